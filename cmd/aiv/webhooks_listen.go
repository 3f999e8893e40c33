package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"aiv/cmd/aiv/internal/service"
	"aiv/insights/webhooks"
)

// webhooksListen receives deliveries and prints those that are signed with the secret.
func webhooksListen(ctx context.Context, c *call) error {
	addr := c.Flags.String("addr", "127.0.0.1:8090", "listen on this `HOST:PORT`")
	secret := c.Flags.String("secret", "", "the `SECRET` of the webhook, whsec_…")
	if _, err := c.Parse("-secret"); err != nil {
		return err
	}
	if err := service.CheckAddress(c.Call, "-addr", *addr); err != nil {
		return err
	}
	receiver, err := webhooks.NewReceiver(*secret)
	if err != nil {
		return c.Wrong("-secret: %v", err)
	}
	ctx, stop := service.EndOnHangup(ctx)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	fmt.Fprintf(c.Stderr, "Receiving deliveries at http://%s; stop with Ctrl-C.\n", l.Addr())
	server := &http.Server{Handler: &listener{receiver: receiver, out: c.Stdout, log: c.Stderr}, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A listener prints one line for each verified delivery: its id, its type and its body.
type listener struct {
	receiver *webhooks.Receiver
	mu       sync.Mutex // of out and log
	out, log io.Writer
}

// maxDelivery is larger than the largest event.
const maxDelivery = 1 << 20

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	if err == nil {
		err = l.receiver.Verify(r.Header, body, time.Now())
	}
	var event struct{ Type string }
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		http.Error(w, "not a valid delivery", http.StatusBadRequest)
		fmt.Fprintf(l.log, "Rejected a request from %s: %v.\n", r.RemoteAddr, err)
		return
	}
	fmt.Fprintf(l.out, "%s %s %s\n", r.Header.Get("webhook-id"), event.Type, body)
	w.WriteHeader(http.StatusNoContent)
}

package httpserver_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/httpserver"
)

// TestBodyThatDoesNotArrive: a server waits for a body for a bounded time, whether the handler reads the body or not.
// Afterwards a handler may take its time.
func TestBodyThatDoesNotArrive(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		select {
		case <-r.Context().Done():
			t.Error("the client is taken for gone")
		case <-time.After(time.Minute):
		}
	}
	for _, test := range []struct {
		name, sent string
		handler    http.HandlerFunc
		want       time.Duration
	}{
		{"read", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", read, 20 * time.Second},
		{"not read", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", func(http.ResponseWriter, *http.Request) {}, 20 * time.Second},
		{"chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{", read, 20 * time.Second},
		{"complete", "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", read, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					s := httpserver.New(test.handler, slog.New(slog.DiscardHandler))
					ended <- httpserver.Serve(ctx, s, listenOnce(server), time.Second)
				}()
				began := time.Now()
				go io.WriteString(client, test.sent)
				io.Copy(io.Discard, client)
				if took := time.Since(began).Truncate(time.Second); took != test.want {
					t.Errorf("the connection was closed after %v, want %v", took, test.want)
				}
				stop()
				must(t, <-ended)
			})
		})
	}
}

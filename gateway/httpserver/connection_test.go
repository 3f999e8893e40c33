package httpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/httpserver"
	"aiv/gateway/telemetry"
	"aiv/store/storetest"
)

// TestClientThatReadsNothing: a client that sends requests and never reads loses its connection, whatever the size of
// the responses.
func TestClientThatReadsNothing(t *testing.T) {
	for _, size := range []int{10, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe() // has no buffer: the first write waits for a read
				serveOn(t, listenOnce(server), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					io.WriteString(w, strings.Repeat("x", size))
				}))
				began := time.Now()
				_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				must(t, err)
				for err == nil { // the server reads nothing while it waits to write
					_, err = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				}
				if took := time.Since(began); took != 2*time.Minute {
					t.Errorf("the connection was closed after %v, want 2 min", took)
				}
			})
		})
	}
}

// TestSlowExchange: a request whose body has arrived, that waits as long as a worker's claim may, and whose large
// response is read slowly, gets the whole response.
func TestSlowExchange(t *testing.T) {
	const wait, size = 50 * time.Second, 1 << 20
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(wait)
		if r.Context().Err() != nil {
			t.Error("the client is taken for gone")
		}
		io.WriteString(w, strings.Repeat("x", size))
	})
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		serveOn(t, listenOnce(server), h)
		_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		must(t, err)
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		must(t, err)
		for range 60 {
			time.Sleep(time.Second)
			_, err := io.ReadFull(response.Body, make([]byte, size/64))
			must(t, err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		must(t, err)
		client.Close()
	})
}

// TestShutdownDoesNotWaitForClientsThatReadNothing: drain bounds the shutdown also when responses cannot be sent.
func TestShutdownDoesNotWaitForClientsThatReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20)) })
		const drain = 5 * time.Second
		go func() {
			ended <- httpserver.Serve(ctx, httpserver.New(h, slog.New(slog.DiscardHandler)), listenOnce(server), drain)
		}()
		_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		_, err = io.ReadFull(client, make([]byte, 100)) // the response has begun
		must(t, err)
		stop()
		began := time.Now()
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != drain {
			t.Errorf("after %v: %v, want that the time to drain, %v, was exceeded", time.Since(began), err, drain)
		}
	})
}

// TestListenerBounds: connections beyond the bounds are closed at once, those within are served, and closing one
// permits another.
func TestListenerBounds(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := httpserver.NewListener(tcp, httpserver.ListenerConfig{Max: 5, MaxPerAddress: 3, Log: slog.New(slog.DiscardHandler)})
	serveOn(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	dial := func(from string) net.Conn {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", l.Addr().String())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	served := func(c net.Conn) bool {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // fails where the connection was closed
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the server neither responds nor closes")
		}
		return err == nil && response.StatusCode == http.StatusOK
	}
	var open []net.Conn
	for i, test := range []struct {
		from string
		want bool
	}{
		{"127.0.0.1", true}, {"127.0.0.1", true}, {"127.0.0.1", true}, {"127.0.0.1", false}, {"127.0.0.2", true},
		{"127.0.0.2", true}, {"127.0.0.2", false}, {"127.0.0.3", false},
	} {
		c := dial(test.from)
		open = append(open, c)
		if got := served(c); got != test.want {
			t.Errorf("connection %d, from %s: served %t, want %t", i, test.from, got, test.want)
		}
	}
	open[0].Close()
	storetest.Eventually(t, "a connection is accepted", func() bool { return served(dial("127.0.0.3")) })
	var e telemetry.Exposition
	l.WriteMetrics(t.Context(), &e)
	for want, found := range map[string]bool{
		"aiv_connections 5\n": true, `aiv_connections_rejected_total{bound="address"} 1`: true, `aiv_connections_rejected_total{bound="total"} 0`: false,
	} {
		if strings.Contains(e.String(), want) != found {
			t.Errorf("the metrics contain %q: got %t, want %t:\n%s", want, !found, found, e.String())
		}
	}
}

// TestAcceptErrorsAreLogged: an operator sees that the process is out of descriptors, and nothing when the listener is
// closed.
func TestAcceptErrorsAreLogged(t *testing.T) {
	var log strings.Builder
	from := &failing{err: syscall.EMFILE}
	l := httpserver.NewListener(from, httpserver.ListenerConfig{Max: 1, MaxPerAddress: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 100 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	from.err = net.ErrClosed
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), syscall.EMFILE.Error()); n != 1 {
		t.Errorf("%d lines for 100 errors at once, want 1:\n%s", n, log.String())
	}
	var e telemetry.Exposition
	if l.WriteMetrics(t.Context(), &e); !strings.Contains(e.String(), "aiv_accept_errors_total 100\n") {
		t.Errorf("the metrics do not contain 100 errors:\n%s", e.String())
	}
}

// TestServeReturnsTheErrorOfAListener: a server that can accept no connection does not go on without one.
func TestServeReturnsTheErrorOfAListener(t *testing.T) {
	l := &failing{err: syscall.EBADF}
	if err := httpserver.Serve(t.Context(), httpserver.New(nil, slog.New(slog.DiscardHandler)), l, time.Second); !errors.Is(err, l.err) {
		t.Errorf("got %v, want %v", err, l.err)
	}
}

// failing is a listener that returns an error.
type failing struct {
	net.Listener
	err error
}

func (l *failing) Accept() (net.Conn, error) { return nil, &net.OpError{Op: "accept", Err: l.err} }
func (l *failing) Close() error              { return nil }

package httpserver_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/gateway/httpserver"
)

func newServer(h http.HandlerFunc) *http.Server {
	return httpserver.New(h, slog.New(slog.DiscardHandler))
}

// start runs a server until stop is called.
func start(s *http.Server, l net.Listener, drain time.Duration) (stop func(), ended <-chan error) {
	ctx, stop := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- httpserver.Serve(ctx, s, l, drain) }()
	return stop, end
}

// run runs a server until the test ends.
func run(t testing.TB, s *http.Server, l net.Listener) {
	stop, ended := start(s, l, time.Minute)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
}

// TestWhatEndsAConnection: a connection ends after a chunked request, which may have had a Content-Length too, so that a
// proxy may have seen another end of it, and after a header that is too large.
func TestWhatEndsAConnection(t *testing.T) {
	for _, c := range []struct {
		sent, want string
		close      bool
	}{
		{get, "/", false},
		{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "*", false},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n", "/", true},
		{strings.Replace(get, "x", "x\r\nA: "+strings.Repeat("a", 30_000), 1), "431 Request Header Fields Too Large", true},
	} {
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, r.URL.Path)
		})
		go io.WriteString(client, c.sent)
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != c.want || response.Close != c.close {
			t.Errorf("%.50q: got %q, close %v, %v; want %q, %v", c.sent, body, response.Close, err, c.want, c.close)
		}
		client.Close()
	}
}

// oneConn is a listener that accepts the connections of a channel.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func listenOnce(c net.Conn) *oneConn {
	l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- c
	return l
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

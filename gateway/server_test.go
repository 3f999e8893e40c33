package gateway_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway"
)

// serveOn serves on the listener until the test ends.
func serveOn(t *testing.T, l net.Listener, h http.HandlerFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Serve(ctx, gateway.NewServer(h, slog.New(slog.DiscardHandler)), l, 10*time.Second)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestConnection sends requests as clients do, and as they hardly ever do.
func TestConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/unread" {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
		}
		io.WriteString(w, r.URL.Path)
	})
	const get = "GET /one HTTP/1.1\r\nHost: x\r\n\r\n"
	post := func(path, body string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n" + body
	}
	for _, c := range []struct {
		name  string
		sent  []string
		after func(*net.TCPConn) error
		want  []string
	}{
		{"one after the other", []string{get, post("/two", "12345678"), get}, nil, []string{"/one", "/two", "/one"}},
		{"at once", []string{get + post("/two", "12345678") + get}, nil, []string{"/one", "/two", "/one"}},
		{"a body in two pieces", []string{post("/one", "1234"), "5678" + get}, nil, []string{"/one", "/one"}},
		{"an end, and then the answer", []string{get}, (*net.TCPConn).CloseWrite, []string{"/one"}},
		// Longer than net/http's buffer, which is at some time full but for one byte.
		{"a byte at a time", strings.Split(strings.Replace(get, "\r\n\r\n", "\r\nA: "+strings.Repeat("a", 5000)+"\r\n\r\n", 1), ""), nil,
			[]string{"/one"}},
		{"a body that nobody reads", []string{"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n", strings.Repeat("b", 2_000_000)}, nil,
			[]string{"/unread"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(15 * time.Second)) // less than a client has to send a request
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for _, s := range c.sent {
					io.WriteString(conn, s)
				}
				if c.after != nil {
					c.after(conn.(*net.TCPConn))
				}
			}()
			in := bufio.NewReader(conn)
			for _, want := range c.want {
				answer, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				if err != nil || string(body) != want {
					t.Fatalf("%q, %v; want %q", body, err, want)
				}
			}
			<-sent
		})
	}
}

// TestClientIsNotWatched: while a request is served, and its answer waits for the database, nothing is read.
func TestClientIsNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		read := &countedReads{Conn: server}
		l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conn <- read
		entered, leave := make(chan struct{}), make(chan struct{})
		serveOn(t, l, func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-leave
		})
		go io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-entered
		synctest.Wait()
		if n := read.underWay.Load(); n != 0 {
			t.Errorf("%d reads are under way while the request is served", n)
		}
		close(leave)
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Error(answer, err)
		}
		client.Close()
	})
}

// countedReads is a connection that tells how many reads are under way.
type countedReads struct {
	net.Conn
	underWay atomic.Int32
}

func (c *countedReads) Read(p []byte) (int, error) {
	c.underWay.Add(1)
	defer c.underWay.Add(-1)
	return c.Conn.Read(p)
}

// oneConn is a listener that accepts the connections of a channel.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
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

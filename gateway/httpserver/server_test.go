package httpserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// TestRequestsArriveInPieces sends requests in usual and unusual pieces. A response says when the connection ends.
func TestRequestsArriveInPieces(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &halfClosing{Listener: tcp}
	s := newServer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/unread" {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
		}
		io.WriteString(w, r.URL.Path)
	})
	s.ReadTimeout = 2 * time.Minute // longer than the deadline of a test's connection
	run(t, s, httpserver.NewListener(l, httpserver.ListenerConfig{Max: 100, MaxPerAddress: 100}))
	get := strings.Replace(get, "/", "/one", 1)
	post := func(path, body string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n" + body
	}
	// Longer than net/http's buffer, which is at some time full but for one byte.
	long := strings.Replace(get, "\r\n\r\n", "\r\nA: "+strings.Repeat("a", 5000)+"\r\n\r\n", 1)
	unread := strings.Replace(post("/unread", strings.Repeat("b", 2_000_000)), "Length: 8", "Length: 2000000", 1)
	// Such a request may have had a Content-Length too, and a proxy may have seen another end of it.
	chunked := strings.Replace(post("/one", "1\r\n{\r\n0\r\n\r\n"), "Content-Length: 8", "Transfer-Encoding: chunked", 1)
	type step struct {
		send string
		want []string // responses, read before the next step
	}
	var slowly []step
	for b := range strings.SplitSeq(long, "") {
		slowly = append(slowly, step{send: b})
	}
	for _, c := range []struct {
		name       string
		steps      []step
		after      func(*net.TCPConn) error // before the responses to the last step
		halfClosed int32                    // by the server
	}{
		{"one after the other", []step{{get, []string{"/one"}}, {post("/two", "12345678"), []string{"/two"}}, {get, []string{"/one"}}}, nil, 0},
		{"at once", []step{{get + post("/two", "12345678") + get, []string{"/one", "/two", "/one"}}}, nil, 0},
		{"a body in two pieces", []step{{post("/one", "1234"), nil}, {"5678" + get, []string{"/one", "/one"}}}, nil, 0},
		{"half-closed before the response", []step{{get, []string{"/one"}}}, (*net.TCPConn).CloseWrite, 0},
		{"a byte at a time", append(slowly, step{get, []string{"/one", "/one"}}), nil, 0},
		{"a body that is not read", []step{{unread, []string{"/unread (close)"}}}, nil, 1},
		{"a chunked body", []step{{chunked, []string{"/one (close)"}}}, nil, 0},
		{"OPTIONS *", []step{{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", []string{"*"}}}, nil, 0},
		{"a header that is too large", []step{{strings.Replace(long, "A: ", "A: "+strings.Repeat("a", 20_000), 1),
			[]string{"431 Request Header Fields Too Large (close)"}}}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", l.Addr().String())
			must(t, err)
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(time.Minute))
			before := l.halfClosed.Load()
			in := bufio.NewReader(conn)
			for i, s := range c.steps {
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					io.WriteString(conn, s.send)
					if c.after != nil && i == len(c.steps)-1 {
						c.after(conn.(*net.TCPConn))
					}
				}()
				for _, want := range s.want {
					response, err := http.ReadResponse(in, nil)
					must(t, err)
					body, err := io.ReadAll(response.Body)
					if response.Close {
						body = append(body, " (close)"...)
					}
					if err != nil || string(body) != want {
						t.Fatalf("%q, %v; want %q", body, err, want)
					}
				}
				<-sent
			}
			if c.halfClosed > 0 {
				io.Copy(io.Discard, in) // to the end, which the server sends first
			}
			if n := l.halfClosed.Load() - before; n != c.halfClosed {
				t.Errorf("the server has ended its side %d times, want %d", n, c.halfClosed)
			}
		})
	}
}

// halfClosing is a listener that counts the connections whose sending side the server has ended.
type halfClosing struct {
	net.Listener
	halfClosed atomic.Int32
}

func (l *halfClosing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &halfClosingConn{c.(*net.TCPConn), l}, nil
}

type halfClosingConn struct {
	*net.TCPConn
	l *halfClosing
}

func (c *halfClosingConn) CloseWrite() error {
	c.l.halfClosed.Add(1)
	return c.TCPConn.CloseWrite()
}

// TestContextEndsWhenTheClientDisconnects also holds over TLS.
func TestContextEndsWhenTheClientDisconnects(t *testing.T) {
	t.Parallel()
	certificate := newPair(t, 1, -time.Hour, time.Hour)
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", withTLS), func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan error, 1)
			s := newServer(func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				close(entered)
				select {
				case <-r.Context().Done():
					left <- nil
				case <-time.After(time.Minute):
					left <- errors.New("the client is taken for there")
				}
			})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			client, err := net.Dial("tcp", l.Addr().String())
			must(t, err)
			if withTLS {
				s.TLSConfig = certificate.Config()
				client = tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			}
			run(t, s, l)
			send(t, client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			<-entered
			if c, ok := client.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol != "http/1.1" {
				t.Errorf("got protocol %q", c.ConnectionState().NegotiatedProtocol)
			}
			client.Close()
			must(t, <-left)
		})
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

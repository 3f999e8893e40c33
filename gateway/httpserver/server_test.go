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
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/httpserver"
)

// serveOn serves on the listener until the test ends.
func serveOn(t testing.TB, l net.Listener, h http.Handler) {
	run(t, httpserver.New(h, slog.New(slog.DiscardHandler)), l)
}

// run runs a server until the test ends.
func run(t testing.TB, s *http.Server, l net.Listener) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- httpserver.Serve(ctx, s, l, 10*time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
}

// TestRequestsArriveInPieces sends requests in usual and unusual pieces.
func TestRequestsArriveInPieces(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &halfClosing{Listener: tcp}
	serveOn(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/unread" {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
		}
		io.WriteString(w, r.URL.Path)
	}))
	const get = "GET /one HTTP/1.1\r\nHost: x\r\n\r\n"
	post := func(path, body string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n" + body
	}
	// Longer than net/http's buffer, which is at some time full but for one byte.
	long := strings.Replace(get, "\r\n\r\n", "\r\nA: "+strings.Repeat("a", 5000)+"\r\n\r\n", 1)
	unread := strings.Replace(post("/unread", strings.Repeat("b", 2_000_000)), "Length: 8", "Length: 2000000", 1)
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
		{"a body that is not read", []step{{unread, []string{"/unread"}}}, nil, 1},
		{"OPTIONS *", []step{{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", []string{"*"}}}, nil, 0},
		{"a header that is too large", []step{{strings.Replace(long, "A: ", "A: "+strings.Repeat("a", 20_000), 1),
			[]string{"431 Request Header Fields Too Large"}}}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", l.Addr().String())
			must(t, err)
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(15 * time.Second)) // less than a client has to send a request
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

// TestSlowClient: connections of clients that send slowly, or nothing, are closed at the timeouts, whether the handler
// reads the body or not.
func TestSlowClient(t *testing.T) {
	reads := func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }
	ignores := func(http.ResponseWriter, *http.Request) {}
	const halfABody = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n1234"
	const chunk = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{"
	for _, c := range []struct {
		name, sent string
		handler    http.HandlerFunc
		want       time.Duration
	}{
		{"nothing", "", reads, 20 * time.Second},
		{"half a header", "GET / HTTP/1.1\r\nHo", reads, 20 * time.Second},
		{"half a body", halfABody, reads, 20 * time.Second},
		{"half a body that is not read", halfABody, ignores, 20 * time.Second},
		{"half a chunked body", chunk, reads, 20 * time.Second},
		{"one request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", reads, 2 * time.Minute},
		{"one with a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n1234", reads, 2 * time.Minute},
		{"one and a half", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", reads, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				serveOn(t, listenOnce(server), c.handler)
				began := time.Now()
				go io.WriteString(client, c.sent)
				io.Copy(io.Discard, client)
				if took := time.Since(began).Truncate(time.Second); took != c.want {
					t.Errorf("the connection was closed after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestContextEndsWhenTheClientDisconnects also holds over TLS.
func TestContextEndsWhenTheClientDisconnects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePair(t, filepath.Join(dir, "crt"), filepath.Join(dir, "key"), 1)
	certificate, err := httpserver.NewCertificate(filepath.Join(dir, "crt"), filepath.Join(dir, "key"), slog.New(slog.DiscardHandler))
	must(t, err)
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", withTLS), func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan error, 1)
			s := httpserver.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				close(entered)
				select {
				case <-r.Context().Done():
					left <- nil
				case <-time.After(10 * time.Second):
					left <- errors.New("the client is taken for there")
				}
			}), slog.New(slog.DiscardHandler))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			client, err := net.Dial("tcp", l.Addr().String())
			must(t, err)
			if withTLS {
				s.TLSConfig = certificate.Config()
				client = tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			}
			run(t, s, l)
			_, err = io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			must(t, err)
			<-entered
			if c, ok := client.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol != "http/1.1" {
				t.Errorf("got protocol %q", c.ConnectionState().NegotiatedProtocol)
			}
			client.Close()
			must(t, <-left)
		})
	}
}

// TestShutdownDrainsConnections: idle connections stay open for a second, or as long as there is to drain. A request on one of them gets
// its response, with Connection: close. A request in progress has the whole time to drain.
func TestShutdownDrainsConnections(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, test := range []struct {
		name         string
		drain        time.Duration
		sent         string
		after, lasts time.Duration // when the request is sent, and how long it is served
		want         time.Duration // how long the shutdown takes; net/http looks twice a second whether it is complete
		err          error
	}{
		{"idle", 5 * time.Second, "", 0, 0, time.Second, nil},
		{"idle with less to drain", 500 * time.Millisecond, "", 0, 0, 500 * time.Millisecond, nil},
		{"a request on an idle connection", 5 * time.Second, request, 500 * time.Millisecond, 0, 500 * time.Millisecond, nil},
		{"a long request", 5 * time.Second, request, 0, 4 * time.Second, 4 * time.Second, nil},
		{"a request that is too long", 5 * time.Second, request, 0, 6 * time.Second, 5 * time.Second, context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/" {
						time.Sleep(test.lasts)
					}
				})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- httpserver.Serve(ctx, httpserver.New(h, slog.New(slog.DiscardHandler)), listenOnce(server), test.drain)
				}()
				in := bufio.NewReader(client)
				_, err := io.WriteString(client, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
				must(t, err)
				response, err := http.ReadResponse(in, nil)
				if err != nil || response.Close {
					t.Fatalf("before the shutdown: got %+v, %v", response, err)
				}
				stop()
				began := time.Now()
				time.Sleep(test.after)
				io.WriteString(client, test.sent)
				if test.sent != "" && test.err == nil {
					if response, err = http.ReadResponse(in, nil); err != nil || !response.Close {
						t.Errorf("got %+v, %v; want a response with Connection: close", response, err)
					}
				}
				if _, err := in.ReadByte(); err != io.EOF {
					t.Errorf("after the response: got %v, want the end of the connection", err)
				}
				err = <-ended
				if took := time.Since(began).Truncate(500 * time.Millisecond); !errors.Is(err, test.err) || took != test.want {
					t.Errorf("the shutdown took %v and returned %v, want %v and %v", took, err, test.want, test.err)
				}
				time.Sleep(test.lasts) // until the handler has returned
			})
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

package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/storetest"
)

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func newServer(h http.HandlerFunc) *http.Server { return New(h, slog.New(slog.DiscardHandler)) }

// start runs a server for one connection until stop is called.
func start(s *http.Server, c net.Conn, drain time.Duration) (stop func(), ended <-chan error) {
	ctx, stop := context.WithCancel(context.Background())
	l, end := newFakeListener(net.ErrClosed), make(chan error, 1)
	l.conns <- c
	go func() { end <- Serve(ctx, s, l, drain) }()
	return stop, end
}

// run runs a server for one connection until the test ends.
func run(t testing.TB, s *http.Server, c net.Conn) {
	stop, ended := start(s, c, time.Minute)
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
}

// connect serves a handler on a connection until the test ends, and returns the side of the client. The connection has
// no buffer: a write waits for a read.
func connect(t *testing.T, h http.HandlerFunc) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	run(t, newServer(h), server)
	return client
}

var must = storetest.Must

// TestSlowClient: connections of clients that send slowly, or nothing, are closed at the timeouts, whether the handler
// reads the body or not. So are connections of clients that send requests and read no responses.
func TestSlowClient(t *testing.T) {
	reads := func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }
	ignores := func(http.ResponseWriter, *http.Request) {}
	const halfABody = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n1234"
	for _, c := range []struct {
		name, sent string
		handler    http.HandlerFunc
		want       time.Duration
	}{
		{"nothing", "", reads, 20 * time.Second},
		{"half a body", halfABody, reads, 20 * time.Second},
		{"half a body that is not read", halfABody, ignores, 20 * time.Second},
		{"one request", get, reads, 2 * time.Minute},
		{"one and a half", get + "GET / HT", reads, 20 * time.Second},
		{"responses are not read", strings.Repeat(get, 1000), ignores, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, began := connect(t, c.handler), time.Now()
				if c.name == "responses are not read" { // the server reads nothing while it waits to write
					io.WriteString(client, c.sent)
				} else {
					go io.WriteString(client, c.sent)
					io.Copy(io.Discard, client)
				}
				if took := time.Since(began).Truncate(time.Second); took != c.want {
					t.Errorf("the connection was closed after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestShutdownDoesNotWaitForClientsThatReadNothing: drain bounds the shutdown also when responses cannot be sent.
func TestShutdownDoesNotWaitForClientsThatReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const drain = 5 * time.Second
		client, server := net.Pipe()
		defer client.Close()
		stop, ended := start(newServer(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20)) }), server, drain)
		io.WriteString(client, get)
		_, err := io.ReadFull(client, make([]byte, 100)) // the response has begun
		must(t, err)
		stop()
		began := time.Now()
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != drain {
			t.Errorf("after %v: %v, want that the time to drain, %v, was exceeded", time.Since(began), err, drain)
		}
	})
}

// TestShutdownDrainsConnections: idle connections stay open for a second, or as long as there is to drain. A request on
// one of them gets its response, with Connection: close. A request in progress has the whole time to drain.
func TestShutdownDrainsConnections(t *testing.T) {
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
		{"a request on an idle connection", 5 * time.Second, get, 500 * time.Millisecond, 0, 500 * time.Millisecond, nil},
		{"a long request", 5 * time.Second, get, 0, 4 * time.Second, 4 * time.Second, nil},
		{"a request that is too long", 5 * time.Second, get, 0, 6 * time.Second, 5 * time.Second, context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				stop, ended := start(newServer(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/" {
						time.Sleep(test.lasts)
					}
				}), server, test.drain)
				in := bufio.NewReader(client)
				io.WriteString(client, strings.Replace(get, "/", "/first", 1))
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

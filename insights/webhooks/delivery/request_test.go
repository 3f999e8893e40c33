package delivery

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"

	"aiv/insights/webhooks"
)

// TestOneRequestPerAttempt: a receiver that reads a request and drops the connection gets the request once, however
// many other connections to it are idle.
func TestOneRequestPerAttempt(t *testing.T) {
	t.Parallel()
	const connections = 8
	var open sync.WaitGroup // until that many requests are in flight, each on a connection of its own
	open.Add(connections)
	var drop atomic.Bool
	var dropped atomic.Int32
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if drop.Load() {
			dropped.Add(1)
			panic(http.ErrAbortHandler)
		}
		open.Done()
		open.Wait()
		w.WriteHeader(http.StatusNoContent)
	})
	s := newSender(&restrictedDialer{resolver: net.DefaultResolver, timeout: waitTimeout, allowPrivate: true}, connections)
	var sent sync.WaitGroup
	for range connections {
		sent.Go(func() {
			equal(t, "", s.send(t.Context(), r.URL, http.Header{}, []byte("{}")).err, "an attempt that opens a connection")
		})
	}
	sent.Wait()
	drop.Store(true)
	for attempt := range int32(connections) {
		equal(t, webhooks.ErrorConnection, s.send(t.Context(), r.URL, http.Header{}, []byte("{}")).err,
			"attempt ", attempt+1)
		if got := dropped.Load(); got != attempt+1 {
			t.Fatalf("%d requests after %d attempts", got, attempt+1)
		}
	}
}

// TestClosedIdleConnection: an attempt succeeds on a new connection if the receiver closes the idle one before anything
// is written.
func TestClosedIdleConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	var requests atomic.Int32
	accepted, ended := make(chan *net.TCPConn, 2), make(chan struct{}, 2)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn.(*net.TCPConn)
			go func() {
				defer conn.Close()
				for reader := bufio.NewReader(conn); ; {
					request, err := http.ReadRequest(reader)
					if err != nil { // the client has closed the connection
						ended <- struct{}{}
						return
					}
					io.Copy(io.Discard, request.Body)
					requests.Add(1)
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	s := newSender(&restrictedDialer{resolver: net.DefaultResolver, timeout: waitTimeout, allowPrivate: true}, 1)
	defer s.transport.CloseIdleConnections()
	reused := 0
	// The idle connection ends after it was taken for the request, and before the request is written.
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			reused++
			(<-accepted).CloseWrite()
			<-ended
		}
	}})
	for n := range int32(2) {
		equal(t, "", s.send(ctx, "http://"+listener.Addr().String(), http.Header{}, []byte("{}")).err, "attempt ", n+1)
		equal(t, n+1, requests.Load(), "requests")
	}
	equal(t, 1, reused, "attempts that began on an idle connection")
}

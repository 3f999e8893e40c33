package httpserver_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"aiv/gateway/httpserver"
)

// TestJoinedResponses: on one connection, responses of all sizes arrive as they were written, those with an announced length in
// one system call. The sizes around 4096 minus the header fill net/http's buffer exactly.
func TestJoinedResponses(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &countingListener{Listener: tcp}
	limited := httpserver.NewListener(l, httpserver.ListenerConfig{Max: 1, MaxPerAddress: 1, Log: slog.New(slog.DiscardHandler)})
	all := make([]byte, 200_000)
	for i := range all {
		all[i] = byte(i / 7)
	}
	serveOn(t, limited, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.URL.Query().Get("size"))
		must(t, err)
		pieces, err := strconv.Atoi(r.URL.Query().Get("pieces"))
		must(t, err)
		if r.URL.Query().Get("announced") == "true" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		for i := range pieces {
			w.Write(all[size*i/pieces : size*(i+1)/pieces])
		}
	}))
	client, err := net.Dial("tcp", tcp.Addr().String())
	must(t, err)
	defer client.Close()
	responses := bufio.NewReader(client)
	get := func(method string, size, pieces int, announced bool) (writes int64) {
		t.Helper()
		before := l.writes.Load()
		fmt.Fprintf(client, "%s /?size=%d&pieces=%d&announced=%v HTTP/1.1\r\nHost: x\r\n\r\n", method, size, pieces, announced)
		q, err := http.ReadResponse(responses, &http.Request{Method: method})
		must(t, err)
		body, err := io.ReadAll(q.Body)
		must(t, err)
		want := all[:size]
		if method == "HEAD" {
			want = nil
		}
		if !bytes.Equal(body, want) {
			t.Fatalf("%s of %d bytes in %d pieces: got other bytes", method, size, pieces)
		}
		return l.writes.Load() - before
	}
	for size := 3800; size <= 4200; size++ {
		if n := get("GET", size, 1, true); n > 1 {
			t.Errorf("%d bytes took %d writes", size, n)
		}
	}
	for _, size := range []int{0, 1, 2048, 2049, 8192, 12_000, 28_000, 40_000, 200_000} {
		for _, pieces := range []int{1, 3, 50} {
			for _, announced := range []bool{true, false} {
				n := get("GET", size, pieces, announced)
				if announced && pieces == 1 && n > 1 {
					t.Errorf("%d bytes took %d writes", size, n)
				}
			}
		}
		get("HEAD", size, 1, true)
	}
}

// TestBodyLikeAResponse: a body that contains a response is not taken for the beginning of one.
func TestBodyLikeAResponse(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	inner := []byte("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
	inner = append(inner, bytes.Repeat([]byte("x"), 4096-len(inner))...)
	serveOn(t, tcp, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(20_000+len(inner)))
		w.Write(bytes.Repeat([]byte("y"), 20_000))
		w.Write(inner)
	}))
	q, err := http.Get("http://" + tcp.Addr().String())
	must(t, err)
	defer q.Body.Close()
	body, err := io.ReadAll(q.Body)
	if err != nil || !bytes.HasSuffix(body, inner) {
		t.Errorf("got %d bytes, %v", len(body), err)
	}
}

// countingListener counts the calls of Write of its connections. A system call for several buffers is not one.
type countingListener struct {
	net.Listener
	writes atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{c.(*net.TCPConn), &l.writes}, nil
}

type countingConn struct {
	*net.TCPConn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(p)
}

package engines

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
)

// A relay forwards connections to a server. Those that are made before lost is closed forward nothing afterwards, but
// stay open: neither side learns of it.
type relay struct {
	net.Listener
	server string
	lost   chan struct{}
	made   atomic.Int32 // connections
}

func (r *relay) run() {
	for {
		client, err := r.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			client.Close()
			return
		}
		r.made.Add(1)
		lost := r.lost
		if isClosed(lost) {
			lost = nil
		}
		go forward(client, server, lost)
		go forward(server, client, lost)
	}
}

func forward(to, from net.Conn, lost <-chan struct{}) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if !isClosed(lost) {
			to.Write(b[:n])
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestLostConnection: no request waits for its job's time on an HTTP/2 connection that the network has lost.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	var protocol atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		protocol.Store(int32(r.ProtoMajor))
		enginestest.Answer(200, ofChat(`{"message":{"content":"A"}}`))(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	network := &relay{Listener: l, server: s.Listener.Addr().String(), lost: make(chan struct{})}
	go network.run()

	x := newTest(t, "chat", "https://"+l.Addr().String())
	transport := x.transport.(*http.Transport)
	transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	transport.TLSClientConfig.RootCAs.AddCert(s.Certificate())
	transport.HTTP2.SendPingTimeout /= 100 // the same pings in less time
	transport.HTTP2.PingTimeout /= 10
	ask := func() {
		t.Helper()
		o := x.Execute(t.Context(), testJob("m", false)).(work.Noted).Outcome
		if _, ok := o.(work.Completed); !ok || protocol.Load() != 2 {
			t.Fatalf("%#v by HTTP/%d", o, protocol.Load())
		}
	}
	ask()
	before := network.made.Load()
	close(network.lost)
	ask()
	if network.made.Load() == before {
		t.Error("no other connection was made")
	}
}

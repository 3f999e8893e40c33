package delivery

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

// TestClosedIdleConnection: an attempt is repeated on a new connection if the receiver closes the idle one that it was sent on.
func TestClosedIdleConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(conn)
			for n := range 2 { // responds to the first request of each connection
				request, err := http.ReadRequest(reader)
				if err != nil {
					break
				}
				io.Copy(io.Discard, request.Body)
				if n == 0 {
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}
			conn.Close()
		}
	}()
	s := newSender(&restrictedDialer{resolver: net.DefaultResolver, timeout: waitTimeout, allowPrivate: true}, 1)
	for n := range 2 {
		if r := s.send(t.Context(), "http://"+listener.Addr().String(), http.Header{}, []byte("{}")); r.err != "" {
			t.Errorf("attempt %d: %+v", n+1, r)
		}
	}
}

// TestSilentNameServer: a name that cannot be resolved in time is a timeout.
func TestSilentNameServer(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer conn.Close()
	s := newSender(&restrictedDialer{resolver: resolverAt(conn.LocalAddr()), timeout: 10 * time.Millisecond}, 1)
	if r := s.send(t.Context(), "http://name.test/", http.Header{}, nil); r.err != webhooks.ErrorTimeout {
		t.Errorf("%+v", r)
	}
}

// TestTLSErrorAfterHandshake: with TLS 1.3, a client learns after the handshake that the server requires a certificate.
func TestTLSErrorAfterHandshake(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	must(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	if got := classify(t.Context(), err); got != webhooks.ErrorTLS {
		t.Errorf("%v is %q", err, got)
	}
}

package delivery

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

// TestSilentNameServer: a name that cannot be resolved in time is a timeout.
func TestSilentNameServer(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer conn.Close()
	s := newSender(&restrictedDialer{resolver: resolverAt(conn.LocalAddr()), timeout: 10 * time.Millisecond}, 1)
	equal(t, webhooks.ErrorTimeout, s.send(t.Context(), "http://name.test/", http.Header{}, nil).err)
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
	equal(t, webhooks.ErrorTLS, classify(t.Context(), err), err)
}

// TestFailedHandshake: a TLS handshake ends within the timeout of the dialer, and its connection is closed.
func TestFailedHandshake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, response, want string }{
		{"no response", "", webhooks.ErrorTimeout},
		{"not TLS", "HTTP/1.1 400 Bad Request\r\n\r\n", webhooks.ErrorTLS},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			conn, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, test.response)
			io.Copy(io.Discard, conn)
		}()
		timeout := 5 * time.Second
		if test.response == "" {
			timeout = 250 * time.Millisecond
		}
		d := &restrictedDialer{resolver: net.DefaultResolver, timeout: timeout, allowPrivate: true}
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		_, err = d.DialTLSContext(ctx, "tcp", listener.Addr().String())
		if got := classify(t.Context(), err); got != test.want || ctx.Err() != nil {
			t.Errorf("%s: %v is %q, want %q", test.name, err, got, test.want)
		}
		select {
		case <-closed:
		case <-ctx.Done():
			t.Errorf("%s: the connection is not closed", test.name)
		}
	}
}

// TestLargeBody: of a large response body only the beginning is read.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20)) })
	s := newSender(&restrictedDialer{resolver: net.DefaultResolver, timeout: waitTimeout, allowPrivate: true}, 1)
	dial := s.transport.DialContext
	var read atomic.Int64
	s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &countingConn{conn, &read}, err
	}
	equal(t, "", s.send(t.Context(), r.URL, http.Header{}, nil).err)
	if n := read.Load(); n < maxDrain || n > maxDrain+8<<10 { // with the header and what is buffered
		t.Errorf("%d bytes were read", n)
	}
}

// A countingConn counts the bytes that are read.
type countingConn struct {
	net.Conn
	read *atomic.Int64
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

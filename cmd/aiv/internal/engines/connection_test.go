package engines

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// trusting returns an Executor of chat for a server that has the certificate of another, and its transport.
func trusting(t *testing.T, addr string, s *httptest.Server) (*Executor, *http.Transport) {
	t.Helper()
	x := newTest(t, "chat", "https://"+addr, func(c *Config) { c.Timeout = 5 * time.Minute })
	transport := x.transport.(*http.Transport)
	transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	return x, transport
}

// A network loses what is written to a connection, without a sign, once the connection is lost.
type network struct {
	net.Conn
	lost atomic.Bool
}

func (n *network) Write(b []byte) (int, error) {
	if n.lost.Load() {
		return len(b), nil
	}
	return n.Conn.Write(b)
}

// TestLostConnection: no request waits for its job's time on an HTTP/2 connection that the network has lost.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	var protocol atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol.Store(int32(r.ProtoMajor))
		enginestest.Answer(200, answerOfChat)(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	x, transport := trusting(t, s.Listener.Addr().String(), s)
	var last atomic.Pointer[network]
	transport.DialContext = func(ctx context.Context, kind, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, kind, addr)
		if last.Swap(&network{Conn: c}) != nil { // the one that is lost was before
			transport.HTTP2.PingTimeout = time.Minute
		}
		return last.Load(), err
	}
	transport.HTTP2.SendPingTimeout /= 100 // the same pings in less time
	transport.HTTP2.PingTimeout /= 3
	ask := func() *network {
		t.Helper()
		if got, attrs := outcome(t, x, testJob("m", false)); !strings.HasPrefix(got, completed) || protocol.Load() != 2 {
			t.Fatalf("%s, %v by HTTP/%d", got, attrs, protocol.Load())
		}
		return last.Load()
	}
	first := ask()
	first.lost.Store(true)
	if ask() == first {
		t.Error("no other connection was made")
	}
}

// TestRefusedHTTP2RequestIsTriedTwice: a server that ends each HTTP/2 connection, and says that it has not processed
// the request, gets two requests, and not as many as the time allows.
func TestRefusedHTTP2RequestIsTriedTwice(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	cfg := &tls.Config{Certificates: secure.TLS.Certificates, NextProtos: []string{"h2"}}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	check(t, err)
	defer l.Close()
	var requests atomic.Int32
	refuse := func(c net.Conn) {
		defer c.Close()
		io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00") // SETTINGS (RFC 9113)
		sent := ""
		for b := make([]byte, 4096); !strings.HasSuffix(sent, `"stream":false}`); { // the end of the request
			n, err := c.Read(b)
			if err != nil {
				return
			}
			sent += string(b[:n])
		}
		requests.Add(1)
		io.WriteString(c, "\x00\x00\x08\x07"+strings.Repeat("\x00", 13)) // GOAWAY: the last stream is 0, no error
		io.Copy(io.Discard, c)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go refuse(c)
		}
	}()
	x, _ := trusting(t, l.Addr().String(), secure)
	got, attrs := outcome(t, x, testJob("m", false))
	if !strings.Contains(got, unreachable) || attrs["requests"] != 2 || requests.Load() != 2 {
		t.Errorf("%d requests, %s, %v", requests.Load(), got, attrs)
	}
}

// TestFailedConnectionIsTriedTwice: a refused connection, an unknown CA and a name that does not exist are tried twice.
func TestFailedConnectionIsTriedTwice(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	unknown := "http://" + strings.Repeat("a", 64) + ".invalid" // too long a label to ask a name server
	for _, url := range []string{"http://127.0.0.1:1", secure.URL, unknown} {
		got, attrs := outcome(t, newTest(t, "chat", url), testJob("m", false))
		if !strings.Contains(got, unreachable+`,"message":"The API could not be reached."`) ||
			attrs["requests"] != 2 || attrs["status"] != nil || attrs["detail"] == nil {
			t.Errorf("%s: %s, %v", url, got, attrs)
		}
	}
}

package httpserver

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aiv/gateway/telemetry"
)

// fakeConn is a connection that was opened from an address.
type fakeConn struct {
	net.Conn
	remote             net.Addr
	closed, halfClosed int
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }
func (c *fakeConn) Close() error         { c.closed++; return nil }
func (c *fakeConn) CloseWrite() error    { c.halfClosed++; return nil }

// fakeListener accepts the connections of a channel. For nil, and after it was closed, it returns an error.
type fakeListener struct {
	net.Listener
	conns chan net.Conn
	err   error
	once  sync.Once
}

func newFakeListener(err error) *fakeListener {
	return &fakeListener{conns: make(chan net.Conn, 2), err: err}
}

func (l *fakeListener) Accept() (net.Conn, error) {
	if c := <-l.conns; c != nil {
		return c, nil
	}
	return nil, &net.OpError{Op: "accept", Err: l.err}
}

func (l *fakeListener) Close() error   { l.once.Do(func() { close(l.conns) }); return nil }
func (l *fakeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func hasMetrics(t *testing.T, l *Listener, want ...string) {
	t.Helper()
	var e telemetry.Exposition
	l.WriteMetrics(t.Context(), &e)
	for _, sample := range want {
		if !strings.Contains(e.String(), sample) {
			t.Errorf("the metrics do not contain %q:\n%s", sample, e.String())
		}
	}
}

// TestListenerBounds: connections beyond the bounds are closed at once. They count by IPv4 address or IPv6 /64 network,
// however the address is written; those without an IP address have only the total as their bound. A connection that is
// closed twice is released once. Its sending side can be ended alone, as net/http does so that a client can read a
// response to a body that was not read. Grown is called for each step of connections that are open at a time.
func TestListenerBounds(t *testing.T) {
	from := newFakeListener(net.ErrClosed)
	grown := 0
	l := NewListener(from, ListenerConfig{Max: 9, MaxPerAddress: 2, Log: slog.New(slog.DiscardHandler), Grown: func() { grown++ }})
	var open []net.Conn
	connect := func(address string, want bool) *fakeConn {
		t.Helper()
		c := &fakeConn{remote: &net.UnixAddr{Name: "@", Net: "unix"}}
		if remote, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(address, "1")); address != "" && err == nil {
			c.remote = remote
		}
		from.conns <- c
		from.conns <- nil
		accepted, err := l.Accept()
		if (err == nil) != want || (c.closed == 0) != want {
			t.Errorf("connection %d, from %q: got %v, closed %d times, want %t", len(open), address, err, c.closed, want)
		}
		if err == nil {
			open = append(open, accepted)
			<-from.conns
		}
		return c
	}
	first := connect("192.0.2.1", true)
	for _, test := range []struct {
		address string
		want    bool
	}{
		{"::ffff:192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8:0:1:2:3:4:5", true}, {"2001:db8:0:1:f::f", true}, {"2001:db8:0:1::", false}, {"2001:db8:0:2::", true},
		{"fe80::1%lo", true}, {"fe80::2", true}, {"fe80::3%lo", false}, {"", true}, {"", false}, {"192.0.2.3", false},
	} {
		connect(test.address, test.want)
	}
	hasMetrics(t, l, "\naiv_connections 9\n", `rejected_total{bound="total"} 2`, `rejected_total{bound="address"} 3`)
	if half, ok := open[0].(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil || first.halfClosed != 1 || first.closed != 0 {
		t.Errorf("the sending side was not ended alone: %+v", first)
	}
	open[0].Close()
	open[0].Close()
	connect("", true)
	connect("192.0.2.1", false) // beyond the total again
	for _, c := range open {
		c.Close()
	}
	if l.open != 0 || len(l.byAddress) != 0 {
		t.Errorf("%d connections of %d addresses are open after all were closed", l.open, len(l.byAddress))
	}

	l.cfg.Max, grown, l.grown = 3*GrowthStep, 0, 0
	for range 2 { // the second time, they replace others
		for open = nil; len(open) <= GrowthStep; {
			connect("", true)
		}
		if grown != 2 {
			t.Errorf("%d connections: %d calls of Grown, want 2", l.open, grown)
		}
		for _, c := range open {
			c.Close()
		}
	}
}

// TestAcceptErrors: an operator sees that the process is out of descriptors, and nothing when the listener is closed. A
// server that can accept no connection ends.
func TestAcceptErrors(t *testing.T) {
	var log strings.Builder
	from := newFakeListener(syscall.EMFILE)
	from.Close()
	l := NewListener(from, ListenerConfig{Max: 1, MaxPerAddress: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 100 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	from.err = net.ErrClosed
	if err := Serve(t.Context(), newServer(nil), l, time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server returns %v, want the error of its listener", err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), syscall.EMFILE.Error()) {
		t.Errorf("%d lines for 100 errors at once, want 1:\n%s", n, log.String())
	}
	hasMetrics(t, l, "aiv_accept_errors_total 100\n")
}

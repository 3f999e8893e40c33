package httpserver

import (
	"errors"
	"log/slog"
	"net"
	"strings"
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

// fakeListener returns one connection, and then an error.
type fakeListener struct {
	net.Listener
	next *fakeConn
	err  error
}

func (l *fakeListener) Accept() (net.Conn, error) {
	c := l.next
	if l.next = nil; c == nil {
		return nil, &net.OpError{Op: "accept", Err: l.err}
	}
	return c, nil
}

func (l *fakeListener) Close() error { return nil }

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
// closed twice is released once. Grown is called for each step of connections that are open at a time.
func TestListenerBounds(t *testing.T) {
	from := &fakeListener{err: net.ErrClosed}
	grown := 0
	l := NewListener(from, ListenerConfig{Max: 9, MaxPerAddress: 2, Log: slog.New(slog.DiscardHandler), Grown: func() { grown++ }})
	var open []net.Conn
	connect := func(address string, want bool) {
		t.Helper()
		from.next = &fakeConn{remote: &net.UnixAddr{Name: "@", Net: "unix"}}
		c := from.next
		if remote, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(address, "1")); address != "" && err == nil {
			c.remote = remote
		}
		accepted, err := l.Accept()
		if (err == nil) != want || (c.closed == 0) != want {
			t.Errorf("connection %d, from %q: got %v, closed %d times, want %t", len(open), address, err, c.closed, want)
		}
		if err == nil {
			open = append(open, accepted)
		}
	}
	for _, test := range []struct {
		address string
		want    bool
	}{
		{"192.0.2.1", true}, {"::ffff:192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8:0:1:2:3:4:5", true}, {"2001:db8:0:1:f::f", true}, {"2001:db8:0:1::", false}, {"2001:db8:0:2::", true},
		{"fe80::1%lo", true}, {"fe80::2", true}, {"fe80::3%lo", false}, {"", true}, {"", false}, {"192.0.2.3", false},
	} {
		connect(test.address, test.want)
	}
	hasMetrics(t, l, "\naiv_connections 9\n", `rejected_total{bound="total"} 2`, `rejected_total{bound="address"} 3`)
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

// TestSendingSideEndsAlone: net/http ends the sending side of a connection first, so that a client can read a response
// to a body that was not read.
func TestSendingSideEndsAlone(t *testing.T) {
	sent := &fakeConn{remote: &net.UnixAddr{}}
	c, err := NewListener(&fakeListener{next: sent}, ListenerConfig{Max: 1}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil || sent.halfClosed != 1 || sent.closed != 0 {
		t.Errorf("got %v, and the connection is %+v", err, sent)
	}
}

// TestAcceptErrors: an operator sees that the process is out of descriptors, and nothing when the listener is closed. A
// server that can accept no connection ends.
func TestAcceptErrors(t *testing.T) {
	var log strings.Builder
	from := &fakeListener{err: syscall.EMFILE}
	l := NewListener(from, ListenerConfig{Max: 1, MaxPerAddress: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 100 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	from.err = net.ErrClosed
	if err := Serve(t.Context(), New(nil, slog.New(slog.DiscardHandler)), l, time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server returns %v, want the error of its listener", err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), syscall.EMFILE.Error()) {
		t.Errorf("%d lines for 100 errors at once, want 1:\n%s", n, log.String())
	}
	hasMetrics(t, l, "aiv_accept_errors_total 100\n")
}

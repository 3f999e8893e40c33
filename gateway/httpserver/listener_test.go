package httpserver

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/gateway/telemetry"
)

// fakeConn is a connection that was opened from an address.
type fakeConn struct {
	net.Conn
	remote net.Addr
	closed int
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }
func (c *fakeConn) Close() error         { c.closed++; return nil }

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

func metricsOf(t *testing.T, l *Listener) string {
	t.Helper()
	var e telemetry.Exposition
	l.WriteMetrics(t.Context(), &e)
	return e.String()
}

// TestListenerBounds: connections beyond the bounds are closed at once. They count by IPv4 address or IPv6 /64 network,
// however the address is written; those without an IP address have only the total as their bound. A connection that is
// closed twice is released once.
func TestListenerBounds(t *testing.T) {
	from := &fakeListener{err: net.ErrClosed}
	l := NewListener(from, ListenerConfig{Max: 9, MaxPerAddress: 2, Log: slog.New(slog.DiscardHandler)})
	var open []net.Conn
	connect := func(address string, want bool) {
		t.Helper()
		c := &fakeConn{remote: &net.UnixAddr{Name: "@", Net: "unix"}}
		if address != "" {
			remote, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(address, "1"))
			if err != nil {
				t.Fatal(err)
			}
			c.remote = remote
		}
		from.next = c
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
	for _, want := range []string{"\naiv_connections 9\n", "\naiv_connections_max 9\n", `rejected_total{bound="total"} 2`,
		`rejected_total{bound="address"} 3`} {
		if page := metricsOf(t, l); !strings.Contains(page, want) {
			t.Errorf("the metrics do not contain %q:\n%s", want, page)
		}
	}
	open[0].Close()
	open[0].Close()
	connect("", true)
	connect("192.0.2.1", false) // beyond the total again
	for _, c := range open {
		c.Close()
	}
	for range 4 {
		connect("", true)
	}
	if l.open != 4 || len(l.byAddress) != 0 {
		t.Errorf("%d connections of %d addresses are open, want 4 without an address", l.open, len(l.byAddress))
	}
}

// TestAcceptErrorsAreLogged: an operator sees that the process is out of descriptors, and nothing when the listener is
// closed.
func TestAcceptErrorsAreLogged(t *testing.T) {
	var log strings.Builder
	from := &fakeListener{err: syscall.EMFILE}
	l := NewListener(from, ListenerConfig{Max: 1, MaxPerAddress: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 100 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	from.err = net.ErrClosed
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), syscall.EMFILE.Error()); n != 1 {
		t.Errorf("%d lines for 100 errors at once, want 1:\n%s", n, log.String())
	}
	if page := metricsOf(t, l); !strings.Contains(page, "aiv_accept_errors_total 100\n") {
		t.Errorf("the metrics do not contain 100 errors:\n%s", page)
	}
}

// TestServeReturnsTheErrorOfAListener: a server that can accept no connection does not go on without one.
func TestServeReturnsTheErrorOfAListener(t *testing.T) {
	l := &fakeListener{err: syscall.EBADF}
	if err := Serve(t.Context(), New(nil, slog.New(slog.DiscardHandler)), l, time.Second); !errors.Is(err, l.err) {
		t.Errorf("got %v, want %v", err, l.err)
	}
}

func (l *fakeListener) Close() error { return nil }

// TestListenerGrows: Grown is called for each step of connections that are open at a time, and not again for those that
// replace others.
func TestListenerGrows(t *testing.T) {
	calls := 0
	l := NewListener(nil, ListenerConfig{Max: 3 * GrowthStep, Grown: func() { calls++ }})
	for range 2 {
		for range GrowthStep + 1 {
			l.acquire(netip.Prefix{})
		}
		if calls != 2 {
			t.Errorf("%d connections: %d calls, want 2", l.open, calls)
		}
		for l.open > 0 {
			l.release(netip.Prefix{})
		}
	}
}

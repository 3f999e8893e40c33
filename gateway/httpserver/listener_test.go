package httpserver

import (
	"log/slog"
	"net"
	"testing"
)

// fakeConn is an open connection of an address.
type fakeConn struct {
	net.Conn
	remote net.Addr
	halves int // closed by CloseWrite
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }
func (c *fakeConn) Close() error         { return nil }
func (c *fakeConn) CloseWrite() error    { c.halves++; return nil }

// fakeListener returns one connection, as often as left says.
type fakeListener struct {
	net.Listener
	c    *fakeConn
	left int
}

func (l *fakeListener) Accept() (net.Conn, error) {
	if l.left--; l.left < 0 {
		return nil, net.ErrClosed
	}
	return l.c, nil
}

// TestAddressOf: connections count by IPv4 address or IPv6 /64 network, however the address is written.
func TestAddressOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1":               "192.0.2.1/32",
		"::ffff:192.0.2.1":        "192.0.2.1/32",
		"2001:db8:0:1:2:3:4:5":    "2001:db8:0:1::/64",
		"2001:db8:0:1:ffff::ffff": "2001:db8:0:1::/64",
		"fe80::1%lo":              "fe80::/64",
	} {
		remote, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(address, "1"))
		if err != nil {
			t.Fatal(err)
		}
		if got := addressOf(&fakeConn{remote: remote}); got.String() != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

// TestListenerCounts: a connection that is closed twice is released once, and connections without an IP address have
// only the total as their bound.
func TestListenerCounts(t *testing.T) {
	for _, remote := range []net.Addr{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, &net.UnixAddr{Name: "@", Net: "unix"}} {
		most := 3
		if _, ok := remote.(*net.UnixAddr); ok {
			most = 10
		}
		l := NewListener(&fakeListener{c: &fakeConn{remote: remote}, left: most}, ListenerConfig{Max: 10, MaxPerAddress: 3, Log: slog.New(slog.DiscardHandler)})
		var open []net.Conn
		for range most {
			c, err := l.Accept()
			if err != nil {
				t.Fatalf("%v: after %d connections: %v", remote, len(open), err)
			}
			open = append(open, c)
		}
		if l.open != most || l.acquire(addressOf(open[0])) {
			t.Errorf("%v: %d connections are open, and another is accepted, want %d", remote, l.open, most)
		}
		for _, c := range open {
			c.Close()
			c.Close()
		}
		if l.open != 0 || len(l.byAddress) != 0 {
			t.Errorf("%v: %d connections of %d addresses are open after all were closed", remote, l.open, len(l.byAddress))
		}
	}
}

// TestCloseWrite: net/http can end the sending side of a connection, by which the client can still read a response to a
// body that was not read to its end.
func TestCloseWrite(t *testing.T) {
	c := &fakeConn{remote: &net.UnixAddr{}}
	limited, _ := NewListener(&fakeListener{c: c, left: 1}, ListenerConfig{Max: 1}).Accept()
	if h, ok := limited.(interface{ CloseWrite() error }); !ok || h.CloseWrite() != nil || c.halves != 1 {
		t.Error("CloseWrite does not end the sending side")
	}
}

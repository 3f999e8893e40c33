package gateway

import (
	"net"
	"sync/atomic"
	"time"
)

// An unwatched listener has net/http not watch whether a client leaves while its request is served. Nobody here asks that
// (see Gateway.deadline), and it costs each request a read that finds nothing, and what it takes to end it: a tenth of all
// that it costs.
//
// net/http watches by a read that has no deadline, and takes it for ended, and the client for there, if it brings nothing.
// With a ReadTimeout every other read has a deadline, as long as no handler lifts it or hijacks the connection. TLS reads
// records, and would read again at once; there net/http watches.
type unwatched struct{ net.Listener }

func (l unwatched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unwatchedConn{Conn: c}, nil
}

type unwatchedConn struct {
	net.Conn
	endless atomic.Bool // the next read has no deadline
}

// Read returns at once, with nothing and no error, if it has no deadline.
func (c *unwatchedConn) Read(p []byte) (int, error) {
	if c.endless.Load() {
		return 0, nil
	}
	return c.Conn.Read(p)
}

func (c *unwatchedConn) SetReadDeadline(t time.Time) error {
	c.endless.Store(t.IsZero())
	if t.IsZero() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite ends this side of the connection, as net/http does so that a client may read an answer to a body that is not
// read to its end.
func (c *unwatchedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

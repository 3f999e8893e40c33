package httpserver

import (
	"net"
	"sync/atomic"
	"time"
)

// An unwatched listener has connections on which net/http does not watch for the client's end while a request is served.
//
// net/http watches by a read without a deadline that runs beside the handler. Handlers here do not stop when the client
// disconnects (see Gateway.deadline), and starting and ending that read takes a tenth of a short request's time. A read without
// a deadline therefore returns at once with nothing, which net/http takes for a client that is still there. All other reads
// have a deadline, provided that the server has a ReadTimeout and no handler removes it or hijacks the connection. TLS
// would retry an empty read without end, so there net/http must watch.
type unwatched struct{ net.Listener }

func (l unwatched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// A conn is a connection of an unwatched listener.
type conn struct {
	net.Conn
	endless atomic.Bool // the next read has no deadline
}

func (c *conn) Read(p []byte) (int, error) {
	if c.endless.Load() {
		return 0, nil
	}
	return c.Conn.Read(p)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.endless.Store(t.IsZero())
	if t.IsZero() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite ends the sending side. net/http does that so that a client can still read a response to a body that was not
// read to its end.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

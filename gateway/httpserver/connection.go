package httpserver

import (
	"net"
	"sync/atomic"
	"time"
)

// connections adds to the connections of a listener what net/http does not do at this price: every write has a deadline,
// and, where unwatched is set, net/http does not watch for the client's end while a request is served.
//
// net/http watches by a read without a deadline that runs beside the handler. Handlers here do not stop when the client
// leaves (see Gateway.deadline), and starting and ending that read takes a tenth of a short request's time. A read without
// a deadline therefore returns at once with nothing, which net/http takes for a client that is still there. All other reads
// have a deadline, provided that the server has a ReadTimeout and no handler removes it or hijacks the connection. TLS
// would retry an empty read without end, so there net/http must watch.
type connections struct {
	net.Listener
	unwatched bool
}

func (l connections) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, unwatched: l.unwatched}, nil
}

// A write ends after writeTimeout at most. Setting a deadline costs more than a short response, so a deadline serves all
// writes until less than half of writeTimeout is left.
const writeTimeout = time.Minute

type conn struct {
	net.Conn
	unwatched bool
	endless   atomic.Bool  // the next read has no deadline
	writeEnd  atomic.Int64 // the deadline of writes, in Unix nanoseconds; 0: none
	foreign   atomic.Bool  // that deadline was set by net/http or crypto/tls
	responds  bool         // the next write is the first of a response
	begun     *joined      // the beginning of a response that is sent with the next write
}

func (c *conn) Read(p []byte) (int, error) {
	if c.endless.Load() {
		return 0, nil
	}
	return c.Conn.Read(p)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	if c.unwatched {
		c.endless.Store(t.IsZero())
		if t.IsZero() {
			return nil
		}
	}
	return c.Conn.SetReadDeadline(t)
}

// Write fails when the client does not take the data in time; net/http then closes the connection.
func (c *conn) Write(p []byte) (int, error) {
	if !c.foreign.Load() {
		if now := time.Now(); c.writeEnd.Load()-now.UnixNano() < int64(writeTimeout/2) {
			end := now.Add(writeTimeout)
			c.writeEnd.Store(end.UnixNano())
			if err := c.Conn.SetWriteDeadline(end); err != nil {
				return 0, err
			}
		}
	}
	first := c.responds
	c.responds = false
	switch {
	case c.begun != nil:
		return c.join(p)
	case first && beginsLarger(p):
		c.keep(p)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.foreign.Store(!t.IsZero())
	c.writeEnd.Store(0)
	if t.IsZero() {
		return nil // the next write sets one
	}
	return c.Conn.SetWriteDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
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

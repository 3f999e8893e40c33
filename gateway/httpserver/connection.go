package httpserver

import (
	"net"
	"time"
)

// connections adds to a listener's connections what net/http lacks or does at a higher cost: the two writes of a larger response are
// one system call, and, where unwatched is set, net/http does not watch for the client's end while a request is served.
type connections struct {
	net.Listener
	unwatched bool
}

func (l connections) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, reads: reads{unwatched: l.unwatched}}, nil
}

// A conn passes reads and writes to two independent parts.
type conn struct {
	net.Conn
	reads     reads
	responses responses
}

func (c *conn) Read(p []byte) (int, error) { return c.reads.read(c.Conn, p) }

func (c *conn) Write(p []byte) (int, error) { return c.responses.write(c.Conn, p) }

func (c *conn) SetReadDeadline(t time.Time) error { return c.reads.setDeadline(c.Conn, t) }

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

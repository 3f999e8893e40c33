package httpserver

import (
	"net"
	"sync/atomic"
	"time"
)

// A write ends after writeTimeout at most.
const writeTimeout = time.Minute

// A writeDeadline is the deadline of a connection's writes. Setting one costs more than a short response, so a deadline serves all writes
// until less than half of writeTimeout is left.
type writeDeadline struct {
	end     atomic.Int64 // in Unix nanoseconds; 0: none
	foreign atomic.Bool  // it was set by net/http or crypto/tls
}

// extend is called before each write.
func (d *writeDeadline) extend(c net.Conn) error {
	if d.foreign.Load() {
		return nil
	}
	now := time.Now()
	if d.end.Load()-now.UnixNano() >= int64(writeTimeout/2) {
		return nil
	}
	end := now.Add(writeTimeout)
	d.end.Store(end.UnixNano())
	return c.SetWriteDeadline(end)
}

// set sets the deadline of net/http or crypto/tls, or removes it.
func (d *writeDeadline) set(c net.Conn, t time.Time) error {
	d.foreign.Store(!t.IsZero())
	d.end.Store(0)
	if t.IsZero() {
		return nil // the next write sets one
	}
	return c.SetWriteDeadline(t)
}

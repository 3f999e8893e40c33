package httpserver

import (
	"net"
	"sync/atomic"
	"time"
)

// reads keeps net/http from watching for the client's end, where unwatched is set.
//
// net/http watches by a read without a deadline that runs beside the handler. Handlers here do not stop when the client
// disconnects (see Gateway.deadline), and starting and ending that read takes a tenth of a short request's time. A read without
// a deadline therefore returns at once with nothing, which net/http takes for a client that is still there. All other reads
// have a deadline, provided that the server has a ReadTimeout and no handler removes it or hijacks the connection. TLS
// would retry an empty read without end, so there net/http must watch.
type reads struct {
	unwatched bool
	endless   atomic.Bool // the next read has no deadline
}

func (r *reads) read(c net.Conn, p []byte) (int, error) {
	if r.endless.Load() {
		return 0, nil
	}
	return c.Read(p)
}

func (r *reads) setDeadline(c net.Conn, t time.Time) error {
	if r.unwatched {
		r.endless.Store(t.IsZero())
		if t.IsZero() {
			return nil
		}
	}
	return c.SetReadDeadline(t)
}

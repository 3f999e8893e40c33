package delivery

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// post sends one request. A receiver may close an idle connection just as it is taken for the request. The request is then sent on
// another connection, but only if nothing of it was written: otherwise the receiver may have read it.
//
// The transport repeats such a POST in most cases, but not if it noticed the end of the connection before it began to write.
// It would do so for a request with an Idempotency-Key, which it also repeats after the receiver has read it.
func (s *sender) post(ctx context.Context, url string, header http.Header, body []byte) (*http.Response, error) {
	for {
		var idle *sentConn // the idle connection that was taken for the request; nil: it has a new one, or none yet
		var before int64
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GetConn: func(string) { idle = nil },
			GotConn: func(info httptrace.GotConnInfo) {
				if conn, ok := info.Conn.(*sentConn); ok && info.Reused {
					idle, before = conn, conn.sent.Load()
				}
			},
		}), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header = header
		response, err := s.transport.RoundTrip(request)
		// Each repetition uses up an idle connection, so the number of repetitions is bounded.
		if err == nil || ctx.Err() != nil || idle == nil || idle.sent.Load() != before {
			return response, err
		}
	}
}

// A sentConn counts the bytes that are sent. Of a TLS connection, these are the bytes before encryption.
type sentConn struct {
	net.Conn
	sent atomic.Int64
}

// Write implements net.Conn.
func (c *sentConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// A dial opens a connection, as http.Transport.DialContext does.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// counting returns d with connections that count what is sent.
func counting(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &sentConn{Conn: conn}, nil
	}
}

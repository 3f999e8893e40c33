package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of a connection. A client that sends its request slowly, or never, holds nothing for long; one that keeps its
// connection open between requests is welcome for a while. Answers are bounded in write, as most fit into the socket's
// buffer and a deadline costs more than they do.
const (
	readTimeout  = 20 * time.Second // of header and body together
	writeTimeout = time.Minute
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10
)

// NewServer returns a server for a public listener.
//
// It speaks HTTP/1.1 only, so that what is open at a time is bounded by the connections. Over HTTP/2 each of them may carry
// a hundred requests, and 2,000 took 2.4 GiB; where each was told that eight are the most, those that sent more still did.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Server{
		Protocols:                    &http1,
		Handler:                      h,
		ReadTimeout:                  readTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is answered like every other address that is not served
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// farewell is how long a client whose connection stands idle has, when the server ends, to send one more request on it:
// it gets its answer, and is told that the connection ends. Without it, a request that is on its way when an idle
// connection is closed would be lost.
const farewell = time.Second

// Serve serves until ctx is done, then takes no new connection and lets the requests under way end, for at most drain. It
// returns nil when all of them ended. With a TLSConfig it serves TLS.
func Serve(ctx context.Context, s *http.Server, l net.Listener, drain time.Duration) error {
	var leaving atomic.Bool
	var open atomic.Int64
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	s.Handler = lastOnConnection(s.Handler, &leaving)
	if s.ReadTimeout > 0 && s.TLSConfig == nil {
		l = unwatched{l}
	}
	failed := make(chan error, 1)
	go func() {
		if s.TLSConfig != nil {
			failed <- s.ServeTLS(l, "", "") // the configuration has the certificate
		} else {
			failed <- s.Serve(l)
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	leaving.Store(true)
	l.Close()
	<-failed // the server has let go of it
	waitForNone(ending, &open, farewell)
	if err := s.Shutdown(ending); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// lastOnConnection tells a client that its connection ends with this answer: when the server is leaving, and when the body
// came in chunks. Beside chunks there may have been a length, which net/http does not show; such a request must be the
// last of its connection, since a proxy may have taken its end to be elsewhere [RFC 9112, 6.1].
func lastOnConnection(h http.Handler, leaving *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving.Load() || len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// waitForNone waits until no connection is open, for at most patience.
func waitForNone(ctx context.Context, open *atomic.Int64, patience time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for open.Load() > 0 {
		select {
		case <-tick.C:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

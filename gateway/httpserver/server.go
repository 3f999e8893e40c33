// Package httpserver serves HTTP to clients that may be slow, silent or hostile: it bounds connections, reads and
// writes, serves TLS with certificates that are renewed, and shuts down without losing requests. Command aiv serves the
// handlers of packages gateway and gateway/worker with it. It owns no table.
package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of a connection. readTimeout covers the header and the body of a request, writeTimeout what follows the
// header: reading the body, serving the request and sending the response. A worker's claim waits for up to 30 s of
// that.
const (
	readTimeout  = 20 * time.Second
	writeTimeout = 2 * time.Minute
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10 // bytes
)

// New returns a server for the listener of clients.
//
// It serves HTTP/1.1 only, so that the bound of connections also bounds the requests. Over HTTP/2 a connection
// carries hundreds: 2,000 connections took 2.4 GiB, even with a limit of eight streams, which clients may exceed before
// they learn of it.
func New(h http.Handler, log *slog.Logger) *http.Server {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Server{
		Protocols:                    &http1,
		Handler:                      h,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is 404 like every other address outside Base
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Idle connections stay open for idleGrace at shutdown. A request sent on one of them gets its response, with
// Connection: close; closing at once would lose requests that are on their way.
const idleGrace = time.Second

// Serve serves until ctx is done. Then it accepts no new connection and waits for the requests in progress, for at most
// drain. It returns nil when all of them have ended. With a TLSConfig it serves TLS.
func Serve(ctx context.Context, s *http.Server, l net.Listener, drain time.Duration) error {
	var leaving atomic.Bool
	var open atomic.Int64
	// Every connection ends in StateClosed, because no handler hijacks one.
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	s.Handler = lastOnConnection(s.Handler, &leaving)
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
	// Shutdown: new connections are refused, open ones get idleGrace, and then only requests in progress are waited
	// for.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	leaving.Store(true)
	l.Close()
	// Serve has returned, so no connection is added to open.
	<-failed
	waitForNone(ending, &open, idleGrace)
	if err := s.Shutdown(ending); err != nil {
		// The requests that are still in progress lose their connections.
		return errors.Join(err, s.Close())
	}
	return nil
}

// lastOnConnection closes a connection after the response when the server is shutting down and when the body was
// chunked. A chunked request may have had a Content-Length too, which net/http removes; its connection must end, since
// a proxy may have seen another end of the request [RFC 9112, 6.1].
func lastOnConnection(h http.Handler, leaving *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving.Load() || len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// waitForNone waits until no connection is open, for at most limit.
func waitForNone(ctx context.Context, open *atomic.Int64, limit time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
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

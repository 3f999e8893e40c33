package private

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// waitReady returns when the server accepts a connection. It starts a supervisor if there is none, and returns the
// error of one that gave up.
func (p *Server) waitReady(ctx context.Context) error {
	// Each connection costs a server that is starting a process. A crash recovery can take minutes.
	for wait := 10 * time.Millisecond; ; wait = min(wait+wait/4, time.Second) {
		url, fault := p.ping(ctx)
		if fault == nil {
			p.url = url
			return nil
		}
		if final, ok := errors.AsType[*pgconn.PgError](fault); ok && !passing(final) {
			return fault
		}
		if _, ok := errors.AsType[*pgconn.ParseConfigError](fault); ok { // because of a PG* variable
			return fault
		}
		if _, err := p.ensureSupervisor(); err != nil {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("%w; last attempt: %w", err, fault)
		}
	}
}

// ping connects once. It resolves the socket's folder each time, since the supervisor creates it.
func (p *Server) ping(ctx context.Context) (string, error) {
	socket, err := filepath.EvalSymlinks(socketLink(p.config.Dir))
	if err != nil {
		return "", err
	}
	url := socketURL(socket, "aiv")
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	return url, conn.Close(ctx)
}

// passing reports whether the error is temporary.
func passing(e *pgconn.PgError) bool {
	return e.Code == "57P03" || // cannot_connect_now: starting, recovering or stopping
		e.Code == "57P01" || e.Code == "57P02" || // it is being stopped, or one of its processes crashed
		e.Code == "53300" // too_many_connections
}

// watch starts a new supervisor when the last one was killed, since the server ended with it. It checks once a second,
// which costs two system calls, and less often while the server does not start.
func (p *Server) watch(ctx context.Context) {
	defer close(p.done)
	const often, rarely = time.Second, 30 * time.Second
	for interval := often; pause(ctx, interval) == nil; {
		started, err := p.ensureSupervisor()
		switch {
		case err != nil:
			p.config.Log.Error("private PostgreSQL does not start", "dir", p.config.Dir, "error", err)
			interval = min(2*interval, rarely)
		case started:
			p.config.Log.Warn("private PostgreSQL had stopped; starting it again", "dir", p.config.Dir)
		default:
			interval = often
		}
	}
}

// ensureSupervisor starts a supervisor if there is none. It returns an error if the last one that this process started
// has given up since.
func (p *Server) ensureSupervisor() (started bool, err error) {
	select {
	case err := <-p.gaveUp:
		p.gaveUp = nil
		if err != nil {
			return false, err
		}
	default:
	}
	if p.gaveUp != nil {
		return false, nil
	}
	p.gaveUp, err = p.startSupervisor()
	return p.gaveUp != nil, err
}

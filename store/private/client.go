package private

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// waitReady returns when the server accepts a connection. It starts a supervisor whenever there is none, and fails when
// one that it started gives up.
func (p *Server) waitReady(ctx context.Context) error {
	var gaveUp <-chan error
	for {
		url, fault := p.ping(ctx)
		if fault == nil {
			p.url = url
			return nil
		}
		if final, ok := errors.AsType[*pgconn.PgError](fault); ok && !passing(final) {
			return fault
		}
		select {
		case err := <-gaveUp:
			if err != nil {
				return err
			}
			gaveUp = nil // it was killed: start another
		default:
		}
		if gaveUp == nil {
			var err error
			if gaveUp, err = p.startSupervisor(); err != nil {
				return err
			}
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
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
	if starting(p.config.Dir) {
		return "", errStarting
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

var errStarting = errors.New("the server is starting")

// starting reports whether the server is starting, by the last line of postmaster.pid. A connection that it refuses
// costs it a process.
func starting(dir string) bool {
	f, err := openServerFile(dataDir(dir), "postmaster.pid")
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 10_000))
	return err == nil && strings.HasSuffix(strings.TrimSpace(string(text)), "starting")
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
	var gaveUp <-chan error
	for interval := often; pause(ctx, interval) == nil; {
		var err error
		select {
		case err = <-gaveUp:
			gaveUp = nil
		default:
		}
		runs := gaveUp != nil
		if !runs && err == nil {
			if gaveUp, err = p.startSupervisor(); gaveUp != nil {
				p.config.Log.Warn("private PostgreSQL had stopped; starting it again", "dir", p.config.Dir)
			}
			runs = gaveUp == nil // without an error, another process has started it
		}
		switch {
		case err != nil:
			p.config.Log.Error("private PostgreSQL does not start", "dir", p.config.Dir, "error", err)
			interval = min(2*interval, rarely)
		case runs:
			interval = often
		}
	}
}

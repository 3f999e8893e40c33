// Package private runs a PostgreSQL server in a folder for programs that were given no database URL. It owns no tables.
// cmd/aiv and storetest call it.
//
// Three kinds of process take part:
//
//   - A user, which is any aiv command, is connected to the supervisor's socket until it ends. It starts a supervisor if
//     there is none.
//   - The supervisor, a detached copy of the program, holds server.lock until it ends. It runs PostgreSQL and counts its
//     users: the kernel closes a user's connection however the user ends. When the last one has ended, the supervisor
//     stops the server and exits.
//   - PostgreSQL is the supervisor's child and, on Linux, ends with it. If PostgreSQL ends or is killed, so does the
//     supervisor. Each user notices that by the end of its connection, and starts another supervisor.
//
// If root starts them, only the user runs as root: it gives the folder to an unprivileged account, and writes nothing
// there afterwards. The supervisor becomes that account before it opens a file.
package private

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"
)

// Server is the use of a private server by this process. The server runs while at least one process uses it.
type Server struct {
	url  string
	log  *slog.Logger
	stop context.CancelFunc
	done chan struct{} // closed when watch has returned
}

// Start returns the private server of a folder when it accepts connections. It creates and starts the server if
// necessary. The folder must be missing, be empty, or come from an earlier Start. log receives the starts and failures.
//
// The program must call [RunSupervisorIfRequested] first.
func Start(ctx context.Context, dir string, log *slog.Logger) (*Server, error) {
	if os.Getenv(supervisorEnv) != "" {
		// Otherwise a program that does not call it would start itself forever.
		return nil, errors.New("start private PostgreSQL: the program does not call private.RunSupervisorIfRequested")
	}
	s := &Server{log: log, done: make(chan struct{})}
	real, conn, err := s.connect(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("start private PostgreSQL in %s: %w", dir, err)
	}
	s.url = socketURL(real)
	using, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.watch(using, real, conn)
	return s, nil
}

// URL returns the connection URL of database aiv, as its owner. It stays the same when the server is restarted.
func (s *Server) URL() string { return s.url }

// Close ends the use of the server. If this was the last user it waits up to 10 s until the server has stopped, so that
// the database is shut down when a container or a service ends.
func (s *Server) Close() {
	s.stop()
	<-s.done
}

// connect returns the real path of the folder, and a connection to its supervisor, when the server accepts connections.
// It starts a supervisor if there is none.
func (s *Server) connect(ctx context.Context, dir string) (string, *net.UnixConn, error) {
	var own <-chan outcome // of the supervisor that this process started
	// While a supervisor stops its server, which takes up to three minutes, it accepts no users and others cannot start.
	failures, wait := 0, 5*time.Millisecond
	for range 2000 {
		real, runAs, err := prepareFolder(dir)
		if err != nil {
			return "", nil, err
		}
		if conn := join(ctx, real, runAs); conn != nil {
			return real, conn, nil
		}
		if own == nil && ctx.Err() == nil {
			s.log.Info("starting private PostgreSQL", "dir", real)
			if own, err = startSupervisor(real); err != nil {
				return "", nil, err
			}
		}
		select {
		case ended := <-own:
			if ended.fault != nil {
				failures++
			}
			if ended.final || failures == 12 {
				return "", nil, ended.fault
			}
			own, wait = nil, min(50*time.Millisecond<<failures, 5*time.Second)
		default:
			wait = min(2*wait, 100*time.Millisecond)
		}
		if err := pause(ctx, wait); err != nil {
			return "", nil, err
		}
	}
	return "", nil, errors.New("its supervisor accepts no users; end all aiv commands that use the folder")
}

// join returns nil if there is no supervisor, if it ends before the server is ready, or when the context ends.
func join(ctx context.Context, dir string, runAs *syscall.Credential) *net.UnixConn {
	if checkPrivate(socketDir(dir), uidOf(runAs)) != nil { // in /tmp it could be another user's
		return nil
	}
	conn, err := net.DialUnix("unix", nil, usersAddr(dir))
	if err != nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })
	if _, err := conn.Read(make([]byte, 1)); !stop() || err != nil {
		conn.Close()
		return nil
	}
	return conn
}

// watch connects again when the supervisor has ended before its last user, because it or the server was killed.
func (s *Server) watch(ctx context.Context, dir string, conn *net.UnixConn) {
	defer close(s.done)
	for {
		awaitEnd(ctx, conn)
		for conn = nil; conn == nil; {
			if ctx.Err() != nil {
				return
			}
			s.log.Warn("private PostgreSQL had stopped; starting it again", "dir", dir)
			var err error
			if _, conn, err = s.connect(ctx, dir); err != nil && ctx.Err() == nil {
				s.log.Error("private PostgreSQL does not start", "dir", dir, "error", err)
				pause(ctx, 10*time.Second)
			}
		}
	}
}

// awaitEnd returns when the supervisor has closed the connection. When the context ends it tells the supervisor that
// this user leaves: the supervisor then closes the connection at once or, to the last user, when the server has stopped.
func awaitEnd(ctx context.Context, conn *net.UnixConn) {
	stop := context.AfterFunc(ctx, func() {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		conn.CloseWrite()
	})
	defer stop()
	io.Copy(io.Discard, conn)
	conn.Close()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

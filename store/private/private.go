package private

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// Config selects a private server.
type Config struct {
	// Dir is the folder of the server; empty means [DefaultDataDir]. It must be missing, be empty, or come from an
	// earlier Start.
	Dir string

	// Ephemeral removes the folder when the last user ends, and turns off what makes data survive a crash. All users of
	// a folder must agree.
	Ephemeral bool

	// Settings override PostgreSQL's. They have no effect while the server already runs.
	Settings map[string]string

	// Archive, if not empty, is a tar file of a data folder that was shut down and has database aiv. It is unpacked
	// instead of running initdb, which takes ten times as long. Tests use it.
	Archive string

	// Log, if not nil, receives the starts and failures of the server.
	Log *slog.Logger
}

// Server is the use of a private server by this process. The server runs
// while at least one process uses it.
type Server struct {
	config Config
	url    string
	users  *os.File     // holds the shared lock of a user
	gaveUp <-chan error // of the supervisor that this process started; used by Start, then only by watch
	stop   context.CancelFunc
	done   chan struct{} // closed when watch has returned
}

// Start returns the private server of a folder when it accepts connections. It creates and starts the server if
// necessary.
//
// The program must call [RunSupervisorIfRequested] first.
func Start(ctx context.Context, config Config) (*Server, error) {
	if os.Getenv(supervisorEnv) != "" {
		// Otherwise a program that does not call it would start itself forever.
		return nil, errors.New("start private PostgreSQL: the program does not call private.RunSupervisorIfRequested")
	}
	if config.Dir == "" {
		dir, err := DefaultDataDir()
		if err != nil {
			return nil, err
		}
		config.Dir = dir
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	p := &Server{config: config, done: make(chan struct{})}
	if err := p.start(ctx); err != nil {
		return nil, fmt.Errorf("start private PostgreSQL in %s: %w", p.config.Dir, err)
	}
	return p, nil
}

func (p *Server) start(ctx context.Context) error {
	if err := p.join(ctx); err != nil {
		return err
	}
	if err := p.waitReady(ctx); err != nil {
		p.leave()
		return err
	}
	watching, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.watch(watching)
	return nil
}

// URL returns the connection URL of database aiv, as its owner. It stays the
// same when the server is restarted.
func (p *Server) URL() string { return p.url }

// Close ends the use of the server. If this was the last user it waits up to 10 s until the server has stopped, so that
// the database is shut down when a container or a service ends.
func (p *Server) Close() {
	p.stop()
	<-p.done
	p.leave()
}

// join makes this process a user. It waits while a supervisor stops the server, and starts over if that supervisor
// removed the folder.
func (p *Server) join(ctx context.Context) error {
	for removed := 0; ; {
		dir, err := prepareFolder(p.config.Dir, p.config.Ephemeral)
		if errors.Is(err, os.ErrNotExist) && removed < 100 {
			removed++
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		p.config.Dir = dir
		users, err := tryLock(dir, usersLock, syscall.LOCK_SH)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if users != nil {
			p.users = users
			return nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the server to stop: %w", err)
		}
	}
}

// leave releases the lock and returns when the server has stopped, has other users, or takes longer than 10 s.
func (p *Server) leave() {
	unlock(p.users)
	patience, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for waiting := true; !left(p.config) && waiting; { // so the last look is after the patience
		waiting = pause(patience, 2*time.Millisecond) == nil
	}
}

// left reports whether a process that ended its use has nothing to wait for: the server has other users, or it has
// stopped. It cleans up after a supervisor that was killed or could not start the server.
func left(config Config) bool {
	// Processes that leave look one after another, so that none takes another's attempt to lock for a user.
	leaving, err := tryLock(config.Dir, leavingLock, syscall.LOCK_EX)
	if leaving == nil {
		return err != nil // the folder is gone, or nothing can be written to it
	}
	defer unlock(leaving)
	users, _ := tryLock(config.Dir, usersLock, syscall.LOCK_EX)
	if users == nil {
		return inUse(config.Dir)
	}
	defer unlock(users)
	supervisor, _ := tryLock(config.Dir, supervisorLock, syscall.LOCK_EX)
	if supervisor == nil {
		return false
	}
	defer unlock(supervisor)
	cleared := stopOrphan(config.Dir)
	removeSocketDir(config.Dir)
	if cleared == nil && config.Ephemeral {
		removeFolder(config.Dir)
	}
	return true
}

// inUse reports whether other processes share the lock that could not be had exclusively. The lock of a supervisor that
// stops the server cannot be shared. If it can be shared because this supervisor has ended since, it can also be had
// exclusively.
func inUse(dir string) bool {
	one, _ := tryLock(dir, usersLock, syscall.LOCK_SH)
	if one == nil {
		return false
	}
	unlock(one)
	all, _ := tryLock(dir, usersLock, syscall.LOCK_EX)
	if all != nil {
		unlock(all)
	}
	return all == nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

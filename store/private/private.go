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

// Config says which private server to use.
type Config struct {
	// Dir is the folder of the server; empty means [DefaultDataDir]. It must
	// not exist, be empty, or be of an earlier Start.
	Dir string

	// Ephemeral removes the folder with the last user, and trades the safety
	// of data that nobody will miss for speed. A folder is one or the other
	// for all its users.
	Ephemeral bool

	// Settings override PostgreSQL's. Who starts the server decides; those who
	// come while it runs share it as it is.
	Settings map[string]string

	// Supervisor is the command that calls [SuperviseIfAsked] first; empty
	// means this program.
	Supervisor []string

	// Log, if not nil, is told what happens to the server.
	Log *slog.Logger

	find func(major int) (binaries, error) // of the tests
}

// Server is the use of a private server by this process. The server runs
// while at least one process uses it.
type Server struct {
	config Config
	url    string
	users  *os.File // locked, shared: this process is a user
	stop   context.CancelFunc
	done   chan struct{} // closed when watch has returned
}

// Start returns the private server of a folder when it accepts
// connections, having made and started it if it has to. Without server
// binaries the error is a [*NoServerError].
//
// The program must call [SuperviseIfAsked] first thing.
func Start(ctx context.Context, config Config) (*Server, error) {
	if os.Getenv(supervisorEnv) != "" {
		// Without this, a program that forgets would start itself forever.
		return nil, errors.New("start private PostgreSQL: the program does not call private.SuperviseIfAsked")
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
	if config.find == nil {
		config.find = findBinaries
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

// Close ends the use of the server. If this was the last user it waits, within
// reason, until the server has stopped, so that a command that ends a container
// or a service leaves a database that was shut down.
func (p *Server) Close() error {
	p.stop()
	<-p.done
	p.leave()
	return nil
}

// join makes this process a user. It waits while a supervisor stops the server, and starts over if that supervisor removed
// the folder.
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
		users, err := tryLock(usersLock(dir), syscall.LOCK_SH)
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

// leave gives up the lock. When it returns, the server has stopped, or has
// other users, or takes unreasonably long.
func (p *Server) leave() {
	p.users.Close()
	patience, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for pause(patience, 2*time.Millisecond) == nil {
		if stopped(p.config) || inUse(p.config.Dir) {
			return
		}
	}
}

// stopped reports whether nobody supervises the folder. It clears up after a
// supervisor that was killed, or could not start the server.
func stopped(config Config) bool {
	supervisor, err := tryLock(supervisorLock(config.Dir), syscall.LOCK_EX)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if supervisor == nil {
		return false
	}
	defer supervisor.Close()
	if users, _ := tryLock(usersLock(config.Dir), syscall.LOCK_EX); users != nil {
		defer users.Close()
		cleared := stopOrphan(config.Dir)
		removeSocketDir(config.Dir)
		if cleared == nil && config.Ephemeral {
			removeFolder(config.Dir)
		}
	}
	return true
}

// inUse reports whether others use the server: their shared locks admit one
// more, but not an exclusive one. A supervisor that stops it admits neither.
func inUse(dir string) bool {
	all, _ := tryLock(usersLock(dir), syscall.LOCK_EX)
	if all != nil {
		all.Close()
		return false
	}
	one, _ := tryLock(usersLock(dir), syscall.LOCK_SH)
	if one != nil {
		one.Close()
	}
	return one != nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

package private

import (
	"context"
	"os"
	"syscall"
)

// Exported for the tests, which are an external package because storetest imports this one.

var (
	InstallCommand = installCommand
	PrepareFolder  = prepareFolder
	RemoveFolder   = removeFolder
)

const SupervisorEnv = supervisorEnv

// WithSupervisor returns a configuration whose supervisor is this program.
func WithSupervisor(config Config, path string) Config {
	config.self = func() (string, error) { return path, nil }
	return config
}

// Ping connects once to the server of a folder.
func Ping(ctx context.Context, dir string) error {
	_, err := (&Server{config: Config{Dir: dir}}).ping(ctx)
	return err
}

// WithServers returns a configuration that finds these servers only: folder to major version.
func WithServers(config Config, servers map[string]int) Config {
	config.find = func(major int) (string, error) {
		var dirs []string
		for dir := range servers {
			dirs = append(dirs, dir)
		}
		return choose(major, dirs, func(dir string) int { return servers[dir] })
	}
	return config
}

// DuplicateLock duplicates the descriptor of a user's lock, as the start of a child process does.
func DuplicateLock(p *Server) (fd int, err error) { return syscall.Dup(int(p.users.Fd())) }

// LeaveEphemeral ends the use of an ephemeral server by the process that holds users, without pauses.
func LeaveEphemeral(dir string, users *os.File) {
	unlock(users)
	for !left(Config{Dir: dir, Ephemeral: true}) {
	}
}

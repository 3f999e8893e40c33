package private

import (
	"os"
	"syscall"
)

// Exported for the tests, which are an external package because storetest imports this one.

var Choose = choose

const SupervisorEnv = supervisorEnv

// DuplicateLock duplicates the descriptor of a user's lock, as the start of a child process does.
func DuplicateLock(p *Server) (fd int, err error) { return syscall.Dup(int(p.users.Fd())) }

// LeaveEphemeral ends the use of an ephemeral server by the process that holds users, without pauses.
func LeaveEphemeral(dir string, users *os.File) {
	unlock(users)
	for !left(Config{Dir: dir, Ephemeral: true}) {
	}
}

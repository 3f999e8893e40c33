package private

import (
	"os"
	"syscall"
)

// dieWithParent makes the kernel send a signal to the child when its parent ends, even if the parent is killed. SIGQUIT
// stops PostgreSQL immediately.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) {
	attr.Pdeathsig = sig
}

// selfPath returns the path of this program, even if its file was replaced or removed since the start, as upgrades and
// `go test` do.
func selfPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

package private

import (
	"os"
	"syscall"
)

// dieWithParent has the kernel send a signal to a child whose parent is gone,
// kill -9 included. SIGQUIT is PostgreSQL's immediate stop.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) {
	attr.Pdeathsig = sig
}

// selfPath is this very program, even if its file has been replaced or removed
// since it started, as an upgrade and `go test` do.
func selfPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

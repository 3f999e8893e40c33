//go:build unix && !linux

package private

import (
	"os"
	"syscall"
)

// dieWithParent does nothing on these systems. A server whose supervisor was killed runs until the next supervisor
// stops it (see stopOrphan).
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

func selfPath() (string, error) { return os.Executable() }

//go:build unix && !linux

package private

import (
	"os"
	"syscall"
)

// dieWithParent cannot be had here: a server whose supervisor was killed runs
// on until the next supervisor stops it (see stopOrphan).
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

func selfPath() (string, error) { return os.Executable() }

//go:build unix && !linux

package private

import "syscall"

// DieWithParent does nothing on these systems. A server whose supervisor was killed runs until the next supervisor
// stops it (see removeStale).
func DieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

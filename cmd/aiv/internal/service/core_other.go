//go:build !linux

package service

import "syscall"

// DisableCoreDumps keeps the system from writing this process's memory to a core file when it crashes: it contains raw
// keys.
func DisableCoreDumps() {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

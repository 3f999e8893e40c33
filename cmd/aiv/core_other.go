//go:build !linux

package main

import "syscall"

// disableCoreDumps keeps the system from writing this process's memory to a core file when it crashes: it contains raw keys.
func disableCoreDumps() {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

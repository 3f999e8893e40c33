//go:build !linux

package main

import "syscall"

// disableCoreDumps keeps the system from writing this process's memory to a core file when it crashes: raw keys stand in it.
func disableCoreDumps() {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

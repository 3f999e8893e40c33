//go:build !linux

package main

import "syscall"

// leaveNoCore keeps the system from writing this process's memory to a core file when it crashes: raw keys stand in it.
func leaveNoCore() {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

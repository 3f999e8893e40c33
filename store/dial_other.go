//go:build !linux

package store

import "syscall"

// setUserTimeout does nothing: elsewhere than on Linux, a lost connection with unacknowledged data ends later.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }

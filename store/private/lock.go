package private

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Names of the lock files.
const (
	usersLock      = "users.lock"
	supervisorLock = "supervisor.lock"
	leavingLock    = "leaving.lock"
)

func isLock(name string) bool {
	return name == usersLock || name == supervisorLock || name == leavingLock
}

// openLock opens a lock file of a folder. Go marks it close-on-exec, so that no child process keeps the lock.
func openLock(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// tryLock returns a lock file of a folder, locked until it is closed, or nil if locks of other processes prevent that.
// It also returns nil for a file that was removed between opening and locking, whose lock has no effect.
func tryLock(dir, name string, how int) (*os.File, error) {
	f, err := openLock(dir, name)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if !isFileAt(f, f.Name()) {
		unlock(f)
		return nil, nil
	}
	return f, nil
}

// unlock releases a lock, and closes its file. Closing alone would not release it while a child process that is being
// started has a copy of the descriptor.
func unlock(f *os.File) {
	flock(f, syscall.LOCK_UN)
	f.Close()
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

func isFileAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}

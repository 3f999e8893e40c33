package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"aiv/store/private"
)

// marker is the file that marks a folder of the demonstration.
const marker = "aiv-demo"

// markerText is for people who find the file.
const markerText = "This folder contains the sample data of aiv demo. It can be removed while aiv demo is not running.\n"

// PrepareFolder makes or checks the folder of the demonstration and returns the folder for its private PostgreSQL. A
// folder that is neither new, nor empty, nor marked is refused and not changed. So is one that another process uses
// until it calls release: a second demonstration would revoke the key of the first.
func PrepareFolder(dir string) (dataDir string, release func(), err error) {
	if dir, err = markFolder(dir); err != nil {
		return "", nil, err
	}
	// The marker is also the lock. It is opened for writing, which some file systems require for an exclusive lock.
	lock, err := os.OpenFile(filepath.Join(dir, marker), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, fmt.Errorf("another aiv demo uses %s; end it first, or choose another folder with -data-dir", dir)
		}
		return "", nil, fmt.Errorf("lock the folder of the demonstration: %w", err)
	}
	return filepath.Join(dir, "postgresql"), func() {
		// A child that is being started has a copy of the descriptor until it executes its program.
		syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
		lock.Close()
	}, nil
}

// markFolder makes or checks the folder and returns its real path.
func markFolder(dir string) (string, error) {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return "", foreign(dir, "is not a folder")
	}
	dir, err := private.Resolve(dir)
	if err != nil {
		return "", err
	}
	if err := private.MakeParents(dir); err != nil {
		return "", fmt.Errorf("make the folder of the demonstration: %w", err)
	}
	// 0711 lets the user that runs PostgreSQL for root pass through the folder, but not list it.
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder of the demonstration: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", foreign(dir, "is not a folder")
	}
	// The owner of a folder can exchange its files while they are used.
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return "", foreign(dir, "belongs to another user")
	}
	// The marker is read and written through a descriptor of the folder, so that no other folder can take its place.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if info, err := root.Lstat(marker); err == nil && info.Mode().IsRegular() {
		return dir, letPass(root)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", foreign(dir, "is not empty and has no file "+marker)
	}
	if err := root.WriteFile(marker, []byte(markerText), 0o644); err != nil {
		return "", fmt.Errorf("mark the folder of the demonstration: %w", err)
	}
	return dir, letPass(root)
}

// letPass lets the account that root's PostgreSQL runs as pass through the folder, whatever the umask was.
func letPass(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil || os.Geteuid() != 0 || info.Mode().Perm()&0o011 == 0o011 {
		return err
	}
	return root.Chmod(".", info.Mode().Perm()|0o011)
}

// foreign returns the error of a folder that the demonstration did not make.
func foreign(dir, reason string) error {
	return fmt.Errorf("%s %s; aiv demo uses only a folder that it made itself: choose a new or empty one with -data-dir", dir, reason)
}

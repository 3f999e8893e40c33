package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// marker is the file that marks a folder of the demonstration.
const marker = "aiv-demo"

const markerText = "This folder contains the sample data of aiv demo. It can be removed while aiv demo is not running.\n"

// A ForeignFolderError reports a folder that the demonstration did not make.
type ForeignFolderError struct {
	Dir    string
	Reason string
}

func (e *ForeignFolderError) Error() string {
	return fmt.Sprintf("%s %s; aiv demo uses only a folder that it made itself: choose a new or empty one with -data-dir", e.Dir, e.Reason)
}

// PrepareFolder makes or checks the folder of the demonstration and returns the folder for its private PostgreSQL. A folder
// that is neither new, nor empty, nor marked is refused with a [*ForeignFolderError] and not changed. So is one that another
// process uses until it calls release: a second demonstration would revoke the key of the first.
func PrepareFolder(dir string) (dataDir string, release func(), err error) {
	if dir, err = markFolder(dir); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, marker), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, fmt.Errorf("another aiv demo%s uses %s; end it first, or choose another folder with -data-dir", readUser(dir), dir)
		}
		return "", nil, fmt.Errorf("lock the folder of the demonstration: %w", err)
	}
	if err := writeUser(lock); err != nil {
		lock.Close()
		return "", nil, fmt.Errorf("mark the folder of the demonstration: %w", err)
	}
	return filepath.Join(dir, "postgresql"), func() {
		// A child that is being started has a copy of the descriptor until it executes its program.
		syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
		lock.Close()
	}, nil
}

// writeUser adds the process that has the lock to the marker's text, instead of the one that had it before.
func writeUser(lock *os.File) error {
	n, err := lock.WriteAt([]byte(markerText+usedBy+strconv.Itoa(os.Getpid())+".\n"), 0)
	if err != nil {
		return err
	}
	return lock.Truncate(int64(n))
}

const usedBy = "It was last used by process "

// readUser returns the process that writeUser has written, for a message; empty: it has not yet.
func readUser(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, marker))
	_, user, _ := strings.Cut(string(text), usedBy)
	if user, _, found := strings.Cut(user, ".\n"); found {
		return " (process " + user + ")"
	}
	return ""
}

// markFolder makes or checks the folder and returns its absolute path.
func markFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	// 0711: when root starts PostgreSQL, it runs as an account that must pass through.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make the folder of the demonstration: %w", err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder of the demonstration: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &ForeignFolderError{dir, "is not a folder"}
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return "", &ForeignFolderError{dir, "belongs to another account"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if info, err := root.Lstat(marker); err == nil && info.Mode().IsRegular() {
		return dir, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", &ForeignFolderError{dir, "is not empty and has no file " + marker}
	}
	if err := root.WriteFile(marker, []byte(markerText), 0o644); err != nil {
		return "", fmt.Errorf("mark the folder of the demonstration: %w", err)
	}
	return dir, nil
}

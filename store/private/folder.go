package private

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// marker is a file whose name states that the folder is a private server's. It is the first file that is written, so
// a folder without one is empty or belongs to something else. Only its name matters: creating a file is atomic, and
// writing its text is not.
const marker = "aiv-private-postgresql"

const markerText = "This folder is the private PostgreSQL of aiv. Copy it only while no aiv runs.\n"

func dataDir(dir string) string { return filepath.Join(dir, "pg") }
func logDir(dir string) string  { return filepath.Join(dir, "log") }
func pidFile(dir string) string { return filepath.Join(dir, "pg", "postmaster.pid") }

// Exists reports whether there is a private server in the folder, or might be in one that cannot be read.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, marker))
	return !errors.Is(err, fs.ErrNotExist)
}

// Resolve returns the real path of dir, whose last elements need not exist. It reports an error if another account
// decides where the path leads: if it owns one of the symbolic links or, for root, could replace a link or a folder.
// The elements are checked from the top: once a folder is known to be safe, no other account can exchange the next.
func Resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, rest := "/", strings.Split(dir, "/")
	for len(rest) > 0 {
		path := filepath.Join(real, rest[0])
		rest = rest[1:]
		if err := checkParent(real, path); err != nil {
			return "", err
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			real = path
			continue
		}
		if owner := ownerOf(info); owner != 0 && owner != uint32(os.Geteuid()) {
			return "", fmt.Errorf("%s is a symbolic link of user %d, which could lead it elsewhere; "+
				"choose the folder that it leads to, or another one", path, owner)
		}
		if _, err := os.Stat(path); err != nil { // as when a volume is not mounted
			return "", fmt.Errorf("%s is a symbolic link that leads to no file: %v", path, err)
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = slices.Concat(strings.Split(target, "/"), rest)
	}
	return real, nil
}

// checkParent reports an error if root is to use a path that another account could replace by renaming it.
func checkParent(parent, path string) error {
	if os.Geteuid() != 0 || path == parent {
		return nil
	}
	info, err := os.Lstat(parent)
	switch {
	case err != nil: // it is missing
		return nil
	case ownerOf(info) != 0:
		return fmt.Errorf("%s belongs to user %d, which could replace %s; run aiv as that user or choose another folder",
			parent, ownerOf(info), path)
	case info.Mode().Perm()&0o011 == 0:
		return fmt.Errorf("PostgreSQL does not run as root and cannot enter %s; choose another folder", parent)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0:
		return fmt.Errorf("other users may write to %s (mode %03o) and could replace %s; choose another folder",
			parent, info.Mode().Perm(), path)
	}
	return nil
}

// MakeParents makes the missing folders above dir. If the caller is root, the user that its server runs as can enter
// them, whatever the umask is.
func MakeParents(dir string) error {
	if os.Geteuid() != 0 {
		return os.MkdirAll(filepath.Dir(dir), 0o700)
	}
	defer syscall.Umask(syscall.Umask(0o022))
	return os.MkdirAll(filepath.Dir(dir), 0o755)
}

// prepareFolder makes a folder the private server's, and returns its real path and the user that the server runs as. It
// creates a folder that does not exist, takes an empty one, and refuses any other that has no marker.
func prepareFolder(dir string) (string, *syscall.Credential, error) {
	dir, err := Resolve(dir)
	if err != nil {
		return "", nil, err
	}
	runAs, err := ServerUser(dir)
	if err != nil {
		return "", nil, err
	}
	if !exists(dir) {
		if err := MakeParents(dir); err != nil {
			return "", nil, err
		}
		if now, err := Resolve(dir); err != nil || now != dir { // another account may have made one of the parents
			return "", nil, cmp.Or(err, fmt.Errorf("%s leads to %s now", dir, now))
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", nil, err
		}
	}
	return dir, runAs, claim(dir, runAs)
}

// claim marks an empty folder and checks a marked one. Root gives it to the user that the server runs as. What other
// accounts put there while they could is never opened: the supervisor checks the owner of each folder, and follows no
// link.
func claim(dir string, runAs *syscall.Credential) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if there, _ := os.Lstat(dir); !os.SameFile(there, info) {
		return fmt.Errorf("%s was replaced while it was opened", dir)
	}
	owner, perm := ownerOf(info), info.Mode().Perm()
	if owner != uint32(os.Geteuid()) && owner != uidOf(runAs) {
		return fmt.Errorf("%s belongs to user %d; run aiv as that user or choose another folder", dir, owner)
	}
	if perm&0o022 != 0 && Exists(dir) {
		return fmt.Errorf("other users may write to %s (mode %03o), so its files may be theirs; remove it or choose another folder", dir, perm)
	}
	if err := checkContents(dir); err != nil { // a folder that is refused stays as it is
		return err
	}
	if perm != 0o700 {
		if err := root.Chmod(".", 0o700); err != nil {
			return err
		}
	}
	file, err := root.OpenFile(marker, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = file.WriteString(markerText)
		err = errors.Join(err, file.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if owner == uidOf(runAs) {
		return nil
	}
	return root.Chown(".", int(runAs.Uid), int(runAs.Gid))
}

// checkContents reports an error if a folder has no marker, but files.
func checkContents(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || Exists(dir) { // in this order: another process may mark the folder now, and use it
		return err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == "lost+found": // of a new file system
		case exists(filepath.Join(dir, name, marker)): // aiv demo keeps its server in a subfolder
			return fmt.Errorf("%s is not a folder of aiv, but %s is; choose that one", dir, filepath.Join(dir, name))
		default:
			return fmt.Errorf("%s is not empty and not a folder of aiv (it has %s); choose another one", dir, name)
		}
	}
	return nil
}

// ServerUser returns the user that the server runs as when root starts it, because PostgreSQL refuses to run as root:
// postgres or, if there is none, nobody. The user postgres may have been created after the folder, whose data belongs to
// nobody then. For other users it is nil, and the server runs as the user.
func ServerUser(dir string) (chosen *syscall.Credential, err error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	data, dataErr := os.Lstat(dataDir(dir))
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(found.Uid, 10, 32) // on Unix it is a number
		gid, _ := strconv.ParseUint(found.Gid, 10, 32)
		if chosen == nil || dataErr == nil && ownerOf(data) == uint32(uid) {
			chosen = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	if chosen == nil {
		return nil, errors.New("PostgreSQL does not run as root, and this machine has no user postgres or nobody")
	}
	return chosen, nil
}

func uidOf(runAs *syscall.Credential) uint32 {
	if runAs == nil {
		return uint32(os.Geteuid())
	}
	return runAs.Uid
}

func ownerOf(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

package private

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A marker is a file whose name states that the folder is a private server's, and of which kind. It is the first file
// that is written, so a folder without one is empty or belongs to something else. Only its name matters: creating
// a file is atomic, and writing its text is not.
const (
	lastingMarker   = "aiv-private-postgresql"
	ephemeralMarker = "aiv-ephemeral-postgresql"
)

const markerText = "This folder is the private PostgreSQL of aiv. Copy it only while no aiv runs.\n"

// Exists reports whether there is a private server in the folder, or might be in one that cannot be read.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, lastingMarker))
	return !errors.Is(err, fs.ErrNotExist)
}

func markers(ephemeral bool) (own, other string) {
	if ephemeral {
		return ephemeralMarker, lastingMarker
	}
	return lastingMarker, ephemeralMarker
}

// DefaultDataDir returns aiv's folder by the XDG base directory specification. For root it is /var/lib/aiv if the
// account that the server runs as cannot enter that folder, because usually only root can enter root's home.
//
// https://specifications.freedesktop.org/basedir/latest/
func DefaultDataDir() (string, error) {
	const system = "/var/lib/aiv"
	runAs, err := serverUser("")
	if err != nil {
		return "", err
	}
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) { // the specification: a relative one is ignored
		home, err := os.UserHomeDir()
		if err != nil && runAs != nil {
			return system, nil
		}
		if err != nil {
			return "", fmt.Errorf("find a folder for aiv's data: %w", err)
		}
		base = filepath.Join(home, ".local", "share")
	}
	if runAs.firstInaccessible(base) != "" {
		return system, nil
	}
	return filepath.Join(base, "aiv"), nil
}

// prepareFolder makes a folder the private server's and returns its real path. It creates a folder that does not exist,
// takes an empty one, and refuses any other that has no marker.
func prepareFolder(dir string, ephemeral bool) (string, error) {
	dir, err := Resolve(dir)
	if err != nil {
		return "", err
	}
	runAs, err := serverUser(dir)
	if err != nil {
		return "", err
	}
	if err := checkWay(dir, runAs); err != nil {
		return "", err
	}
	if err := MakeParents(dir); err != nil {
		return "", err
	}
	if err := checkAncestors(dir); err != nil { // another process may have created one of them
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, adopt(dir, ephemeral, runAs)
}

// MakeParents makes the missing folders above dir. If the caller is root, the account that its server runs as can enter
// them, whatever the umask is.
func MakeParents(dir string) error {
	if os.Geteuid() != 0 {
		return os.MkdirAll(filepath.Dir(dir), 0o700)
	}
	return makeFolders(filepath.Dir(dir))
}

// makeFolders is os.MkdirAll with the mode 0755, without the umask.
func makeFolders(dir string) error {
	const mode = 0o755
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolders(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// checkWay reports an error if the server's account cannot enter the parents of dir.
func checkWay(dir string, runAs *osUser) error {
	if parent := runAs.firstInaccessible(filepath.Dir(dir)); parent != "" {
		return fmt.Errorf("PostgreSQL, which root runs as user %s, cannot enter %s; choose another folder or run aiv as another user", runAs.Name, parent)
	}
	return nil
}

// adopt marks an empty folder and checks a marked one. Everything is done through one open directory, so that the
// folder which is checked is the one which is changed. The folder belongs to the caller: the account that the server
// runs as may enter it but cannot create, replace or link the lock and log files that the caller writes.
func adopt(dir string, ephemeral bool, runAs *osUser) (err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	replaced := fmt.Errorf("%s was removed or replaced while it was opened: %w", dir, fs.ErrNotExist)
	defer func() {
		if !isFileAt(f, dir) { // it was an ephemeral server's, and what is left in it means nothing
			err = replaced
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if owner := ownerOf(info); owner != uint32(os.Geteuid()) {
		return fmt.Errorf("%s belongs to user %d; run aiv as that user or choose another folder", dir, owner)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		return replaced
	}

	own, other := markers(ephemeral)
	if _, err := root.Lstat(other); err == nil {
		// Lasting data must not be removed with the last user, nor be written to a folder that will be.
		return fmt.Errorf("%s has the marker %s, not %s; choose another folder", dir, other, own)
	}
	_, err = root.Lstat(own)
	marked := err == nil
	if _, err := entriesOf(root, dir, own); err != nil { // a folder that is refused stays as it is
		return err
	}
	if marked && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users may write to %s (mode %03o), so its files may be theirs; remove it or choose another folder",
			dir, info.Mode().Perm())
	}
	mode := os.FileMode(0o700)
	if runAs != nil {
		if err := f.Chown(-1, int(runAs.GID)); err != nil {
			return err
		}
		mode = 0o710
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	// No other account can add a file from here on, so the checks below stay true.
	entries, err := entriesOf(root, dir, own)
	if err != nil {
		return err
	}
	if err := checkOwners(root, entries, runAs); err != nil {
		return err
	}
	if marked {
		return nil
	}
	marker, err := root.OpenFile(own, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = marker.WriteString(markerText)
	return errors.Join(err, marker.Close())
}

// entriesOf returns the entries of a folder that is empty or has the marker.
func entriesOf(root *os.Root, dir, marker string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	// Looked for after the entries were read: another process may have marked the folder just now, and used it.
	if _, err := root.Lstat(marker); err == nil {
		return entries, nil
	}
	var foreign string
	for _, entry := range entries {
		if entry.Name() == "lost+found" { // of a new file system
			continue
		}
		if isLock(entry.Name()) { // of a process that ends, and whose folder of this name was removed
			continue
		}
		if _, err := root.Lstat(filepath.Join(entry.Name(), marker)); err == nil { // aiv demo keeps its server in a subfolder
			return nil, fmt.Errorf("%s is not a folder of aiv, but %s is; choose that one", dir, filepath.Join(dir, entry.Name()))
		}
		foreign = cmp.Or(foreign, entry.Name())
	}
	if foreign != "" {
		return nil, fmt.Errorf("%s is not empty and not a folder of aiv (it has %s); choose another one", dir, foreign)
	}
	return entries, nil
}

// removeFolder removes an ephemeral folder. The caller holds both locks. The folder is renamed first, so that a process
// that starts during the removal creates a new folder.
func removeFolder(dir string) error {
	if !exists(filepath.Join(dir, ephemeralMarker)) || exists(filepath.Join(dir, lastingMarker)) {
		return fmt.Errorf("%s is not the folder of an ephemeral server", dir)
	}
	gone := fmt.Sprintf("%s.removed-%d", dir, os.Getpid())
	if err := os.Rename(dir, gone); err != nil {
		gone = dir
	}
	var err error
	for range 10 { // a process that opened the folder before may add a file meanwhile
		if err = os.RemoveAll(gone); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove the server's folder: %w", err)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

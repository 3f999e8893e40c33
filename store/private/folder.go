package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A marker is the file that says that a folder is aiv's, and of which kind. It
// is the first one in it, so a folder without is somebody else's or empty. Its
// name alone counts: a file appears at once, its text does not.
const (
	lastingMarker   = "aiv-private-postgresql"
	ephemeralMarker = "aiv-ephemeral-postgresql"
)

const markerText = "This folder is the private PostgreSQL of aiv. Copy it only while no aiv runs.\n"

func markers(ephemeral bool) (own, other string) {
	if ephemeral {
		return ephemeralMarker, lastingMarker
	}
	return lastingMarker, ephemeralMarker
}

// DefaultDataDir is aiv's folder by the XDG base directory specification. For
// root it is /var/lib/aiv when the account that the server runs as could not
// enter the folder, because root's home is usually root's alone.
//
// https://specifications.freedesktop.org/basedir/latest/
func DefaultDataDir() (string, error) {
	const system = "/var/lib/aiv"
	runAs, err := serverAccount("")
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
	if runAs.barred(base) != "" {
		return system, nil
	}
	return filepath.Join(base, "aiv"), nil
}

// prepareFolder makes a folder aiv's and returns its real path. It takes one
// that does not exist or is empty, and refuses whatever else is not marked.
func prepareFolder(dir string, ephemeral bool) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	runAs, err := serverAccount(dir)
	if err != nil {
		return "", err
	}
	if err := checkWay(dir, runAs); err != nil {
		return "", err
	}
	// Parents that are missing must let the server's account through.
	parents := os.FileMode(0o700)
	if runAs != nil {
		parents = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(dir), parents); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if err := checkWay(dir, runAs); err != nil { // again, now that links are resolved
		return "", err
	}
	return dir, adopt(dir, ephemeral, runAs)
}

// checkWay makes sure that the server's account can get to a folder.
func checkWay(dir string, runAs *account) error {
	if parent := runAs.barred(filepath.Dir(dir)); parent != "" {
		return fmt.Errorf("account %s, as which PostgreSQL runs for root, cannot enter %s; choose another folder or run aiv as another user", runAs.Name, parent)
	}
	return nil
}

// adopt marks an empty folder and checks a marked one. The folder stays the
// caller's: what its locks and logs are written to is not up to the account
// that the server runs as, which may only pass through.
func adopt(dir string, ephemeral bool, runAs *account) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	own, other := markers(ephemeral)
	if exists(filepath.Join(dir, other)) {
		// Lasting data must not be removed with the last user, nor written
		// where it will be.
		return fmt.Errorf("%s has the marker %s, and %s is wanted; choose another folder", dir, other, own)
	}
	marked := exists(filepath.Join(dir, own))
	if owner := ownerOf(info); marked && owner != uint32(os.Geteuid()) {
		return fmt.Errorf("%s belongs to account %d; run aiv as that account", dir, owner)
	}
	if !marked {
		if err := checkEmpty(dir, own); err != nil {
			return err
		}
	}
	mode := os.FileMode(0o700)
	if runAs != nil {
		if err := os.Chown(dir, os.Geteuid(), int(runAs.GID)); err != nil {
			return err
		}
		mode = 0o710
	}
	if err := os.Chmod(dir, mode); err != nil {
		return err
	}
	if marked {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, own), []byte(markerText), 0o600)
}

func checkEmpty(dir, marker string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "lost+found": // of a freshly made file system
		case marker: // of another process, just now
		default:
			return fmt.Errorf("%s is not empty and not a folder of aiv (it has %s); choose another one", dir, entry.Name())
		}
	}
	return nil
}

// removeFolder removes an ephemeral folder of which the caller holds both locks. It is
// moved away first: whoever comes meanwhile makes a new one, not files in a
// folder that is being removed.
func removeFolder(dir string) error {
	if !exists(filepath.Join(dir, ephemeralMarker)) || exists(filepath.Join(dir, lastingMarker)) {
		return fmt.Errorf("%s is not the folder of an ephemeral server", dir)
	}
	gone := fmt.Sprintf("%s.removed-%d", dir, os.Getpid())
	if err := os.Rename(dir, gone); err != nil {
		gone = dir
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove the server's folder: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

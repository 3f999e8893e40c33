package private

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// osUser is the user of the operating system that the server runs as when root starts it, because PostgreSQL refuses to
// run as root. For other users it is nil, and the server runs as the user.
type osUser struct {
	UID, GID uint32
	Name     string
}

// serverUser returns the owner of the data in dir or, if there is none, the user postgres or nobody.
func serverUser(dir string) (*osUser, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	names := []string{"postgres", "nobody"}
	if info, err := os.Lstat(dataDir(dir)); dir != "" && err == nil && info.IsDir() {
		// The user postgres may have been created after this folder. Then the folder belongs to the user nobody.
		owner, err := user.LookupId(strconv.FormatUint(uint64(ownerOf(info)), 10))
		if err != nil {
			return nil, fmt.Errorf("find the owner of %s: %w", dataDir(dir), err)
		}
		names = []string{owner.Username}
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("find the ids of user %s: %w", name, err)
		}
		if uid == 0 {
			return nil, fmt.Errorf("%s belongs to root, and PostgreSQL does not run as root", dataDir(dir))
		}
		return &osUser{UID: uint32(uid), GID: uint32(gid), Name: name}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and this machine has no user postgres or nobody")
}

// firstInaccessible returns the topmost parent of path, or path itself, that the user cannot enter, or "". Missing
// folders are ignored.
func (a *osUser) firstInaccessible(path string) string {
	if a == nil {
		return ""
	}
	if parent := filepath.Dir(path); parent != path {
		if above := a.firstInaccessible(parent); above != "" {
			return above
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	// The server has no supplementary groups.
	mode := info.Mode().Perm()
	switch {
	case ownerOf(info) == a.UID:
		mode >>= 6
	case groupOf(info) == a.GID:
		mode >>= 3
	}
	if mode&1 == 0 {
		return path
	}
	return ""
}

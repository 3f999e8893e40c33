package private

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	socketPort = "5432"
	socketName = ".s.PGSQL." + socketPort

	// The kernel allows 107 bytes on Linux, 103 elsewhere.
	maxSocketPath = 103
)

// socketLink returns the path of the folder of the server's socket, or of a link to it.
func socketLink(dir string) string { return filepath.Join(dir, "socket") }

func socketURL(socket, database string) string {
	query := url.Values{
		"host": {socket}, "port": {socketPort}, "user": {"aiv"}, "sslmode": {"disable"},
		"target_session_attrs": {"any"}, "channel_binding": {"disable"}, // whatever PG* variables require of other servers
	}.Encode()
	// In a PostgreSQL URL a plus is no space.
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: strings.ReplaceAll(query, "+", "%20")}
	return u.String()
}

// makeSocketDir returns a folder for the server's socket that only the server's account can enter. It is in the
// server's folder or, if that path is too long for a socket address, a temporary folder with a short name and a link to
// it.
func makeSocketDir(j job) (string, error) {
	link := socketLink(j.Dir)
	if fitsSocket(link) {
		return link, makeServerDir(j, link)
	}
	// Users have this path in their URL, so a restart keeps it even if TMPDIR has changed.
	short, err := os.Readlink(link)
	if err != nil || filepath.Base(short) != shortName(j.Dir) {
		short = shortDir(j)
	}
	if err := makeServerDir(job{}, short); err != nil {
		return "", err
	}
	if err := claim(j, short); err != nil {
		return "", err
	}
	os.Remove(link)
	if err := os.Symlink(short, link); err != nil {
		return "", fmt.Errorf("link to the socket's folder: %w", err)
	}
	return short, nil
}

// claim makes sure that a folder in a directory which all accounts may write is this account's or the server's, and
// gives it to the server's. Both are done through the open folder, which cannot be exchanged for another.
func claim(j job, dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner := ownerOf(info)
	ours := owner == uint32(os.Geteuid()) || j.RunAs != nil && owner == j.RunAs.UID
	if !info.IsDir() || !ours || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s is not a private folder of aiv; remove it", dir)
	}
	if j.RunAs == nil || owner == j.RunAs.UID {
		return nil
	}
	return f.Chown(int(j.RunAs.UID), int(j.RunAs.GID))
}

// removeSocketDir removes the temporary folder.
func removeSocketDir(dir string) {
	link := socketLink(dir)
	if short, err := os.Readlink(link); err == nil && filepath.Base(short) == shortName(dir) {
		os.RemoveAll(short)
		os.Remove(link)
	}
}

// fitsSocket reports whether dir can be the folder of a socket. A comma separates hosts in a URL, and a quote ends the
// server's setting.
func fitsSocket(dir string) bool {
	return len(dir)+1+len(socketName) <= maxSocketPath && !strings.ContainsAny(dir, `,"'\`)
}

func shortDir(j job) string {
	temp := os.TempDir()
	short := filepath.Join(temp, shortName(j.Dir))
	if filepath.IsAbs(short) && fitsSocket(short) && j.RunAs.firstInaccessible(temp) == "" {
		return short
	}
	return filepath.Join("/tmp", shortName(j.Dir))
}

func shortName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "aiv-" + hex.EncodeToString(sum[:8])
}

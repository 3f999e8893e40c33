package private

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL that aiv works with.
const minMajor = 14

// binariesFor returns the binaries for the data in a folder, which can be read only by servers of the major version that
// created it.
func binariesFor(dir string) (binaries, error) {
	if !exists(dataDir(dir)) {
		return findBinaries(0)
	}
	if err := checkPrivate(dataDir(dir), uint32(os.Geteuid())); err != nil {
		return "", err
	}
	path := filepath.Join(dataDir(dir), "PG_VERSION")
	text, _ := os.ReadFile(path) // on an error there is no version
	major, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if major == 0 { // do not print it: it may be the text of another file
		return "", fmt.Errorf("%s contains no version of PostgreSQL", path)
	}
	return findBinaries(major)
}

// Binaries returns the folder of the installed PostgreSQL that a new private server uses, for tests.
func Binaries() (string, error) {
	dir, err := findBinaries(0)
	return string(dir), err
}

// findBinaries returns the binaries of this machine for the major version or, for 0, any supported one: in PATH or, if
// there are none, the newest in the folders that packages use.
func findBinaries(major int) (found binaries, err error) {
	fits := func(version int) bool { return version >= minMajor && (major == 0 || version == major) }
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // often a link into the folder that has initdb, too
			if dir := binaries(filepath.Dir(path)); fits(dir.major()) {
				return dir, nil
			}
		}
	}
	newest := 0
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
		"/usr/pgsql-*/bin",          // PostgreSQL's own packages for Red Hat
		"/usr/lib/postgresql*/bin",  // SUSE
		"/usr/libexec/postgresql*",  // Alpine
		"/usr/local/pgsql/bin",      // built from source
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		dirs, _ := filepath.Glob(pattern) // the pattern is valid
		for _, dir := range dirs {
			if version := binaries(dir).major(); fits(version) && version > newest {
				found, newest = binaries(dir), version
			}
		}
	}
	if newest > 0 {
		return found, nil
	}
	missing := fmt.Sprintf("no PostgreSQL server of version %d or newer is installed", minMajor)
	if major != 0 {
		missing = fmt.Sprintf("the data was made by PostgreSQL %d, and no server of that version is installed", major)
	}
	return "", fmt.Errorf("%s; install one (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql@17), "+
		"or set DATABASE_URL to use another PostgreSQL", missing)
}

// major returns the version of the server in a folder, 0 if there is none.
func (b binaries) major() (version int) {
	text, _ := exec.Command(filepath.Join(string(b), "postgres"), "--version").Output() // on an error there is none
	_, number, _ := strings.Cut(string(text), "(PostgreSQL) ")
	fmt.Sscan(number, &version) // the minor version is ignored
	return version
}

package private

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minMajor is the oldest PostgreSQL that aiv works with.
const minMajor = 14

// binaries is a folder with postgres and initdb of one version.
type binaries struct {
	dir   string
	major int
}

// findBinaries returns the first usable server of this machine: one of the major version or, for 0, any supported one.
func findBinaries(major int) (binaries, error) {
	return choose(major, candidates(), majorOf)
}

func choose(major int, dirs []string, majorOf func(dir string) int) (binaries, error) {
	missing := &NoServerError{Major: major, Install: installHint(major)}
	for _, dir := range dirs {
		switch found := majorOf(dir); {
		case found == 0:
		case found == major || major == 0 && found >= minMajor:
			return binaries{dir: dir, major: found}, nil
		default:
			missing.Found = append(missing.Found, found)
		}
	}
	return binaries{}, missing
}

// A NoServerError reports that this machine has no usable PostgreSQL server.
type NoServerError struct {
	Major   int    // the version that the data needs, or 0
	Found   []int  // installed versions that cannot be used
	Install string // the command that installs one on this machine, if known
}

func (e *NoServerError) Error() string {
	var b strings.Builder
	if e.Major != 0 {
		fmt.Fprintf(&b, "the data was made by PostgreSQL %d, and no server of that version is installed", e.Major)
	} else {
		fmt.Fprintf(&b, "no PostgreSQL server of version %d or newer is installed", minMajor)
	}
	var found []string
	for _, major := range slices.Compact(slices.Sorted(slices.Values(e.Found))) {
		found = append(found, strconv.Itoa(major))
	}
	if len(found) > 0 {
		b.WriteString(", only " + strings.Join(found, " and "))
	}
	b.WriteString("; install it")
	if e.Install != "" {
		fmt.Fprintf(&b, " with `%s`", e.Install)
	}
	b.WriteString(", or set DATABASE_URL to use another PostgreSQL")
	return b.String()
}

// candidates lists the folders that may contain a server, in order of preference: the folders of PATH and pg_config,
// then the packages' usual ones, newest first.
func candidates() []string {
	var dirs []string
	// These are often links into the folder of the package, which contains both.
	for _, name := range []string{"postgres", "initdb"} {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	if dir := output("pg_config", "--bindir"); dir != "" {
		dirs = append(dirs, dir)
	}
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
		found, _ := filepath.Glob(pattern) // the pattern is valid
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

// number returns the first number in a text, 0 if there is none.
func number(text string) int {
	n, _ := strconv.Atoi(digits.FindString(text))
	return n
}

// majorOf returns the version of the server in a folder, 0 if there is none.
func majorOf(dir string) int {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	_, version, _ := strings.Cut(output(filepath.Join(dir, "postgres"), "--version"), "(PostgreSQL)")
	return number(version)
}

// output returns what a command prints, or an empty text if it fails or takes longer than 5 s.
func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

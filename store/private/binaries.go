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
	"sync"
	"syscall"
	"time"
)

// minMajor is the oldest PostgreSQL that aiv works with.
const minMajor = 14

// findBinaries returns the folder of the first usable server of this machine: one of the major version or, for 0, any
// supported one.
func findBinaries(major int) (string, error) {
	return choose(major, candidates(), majorOf)
}

func choose(major int, dirs []string, majorOf func(dir string) int) (string, error) {
	var others []string
	for _, dir := range dirs {
		switch found := majorOf(dir); {
		case found == 0:
		case found == major || major == 0 && found >= minMajor:
			return dir, nil
		default:
			others = append(others, strconv.Itoa(found))
		}
	}
	missing := fmt.Sprintf("no PostgreSQL server of version %d or newer is installed", minMajor)
	if major != 0 {
		missing = fmt.Sprintf("the data was made by PostgreSQL %d, and no server of that version is installed", major)
	}
	slices.SortFunc(others, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	if others = slices.Compact(others); len(others) > 0 {
		missing += ", only " + strings.Join(others, " and ")
	}
	return "", fmt.Errorf("%s; install one (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql@17), "+
		"or set DATABASE_URL to use another PostgreSQL", missing)
}

// candidates lists the folders that may contain a server, in order of preference: the folders of PATH and pg_config,
// then the packages' usual ones, newest first.
func candidates() []string {
	var dirs []string
	// These are often links into the folder of the package, which contains all programs.
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

// majorOf returns the version of the server in a folder, 0 if there is none.
func majorOf(dir string) int {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	_, version, _ := strings.Cut(output(filepath.Join(dir, "postgres"), "--version"), "(PostgreSQL)")
	return number(version)
}

var digits = regexp.MustCompile(`\d+`)

// number returns the first number in a text, 0 if there is none.
func number(text string) int {
	n, _ := strconv.Atoi(digits.FindString(text))
	return n
}

// output returns what a command prints, or an empty text if it fails or takes longer than 30 s.
func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Command returns one of PostgreSQL's installed programs (postgres, initdb), which runs as the account of the private
// server. owner is nil if that is the account of this process. On Linux the program is killed when the thread that
// started it ends. Command is for tests that need a separate server.
func Command(name string, args ...string) (cmd *exec.Cmd, owner *syscall.Credential, err error) {
	binaries, err := installed()
	if err != nil {
		return nil, nil, err
	}
	runAs, err := serverUser("")
	if err != nil {
		return nil, nil, err
	}
	cmd = serverCommand(job{Binaries: binaries, RunAs: runAs}, name, args...)
	dieWithParent(cmd.SysProcAttr, syscall.SIGQUIT)
	return cmd, cmd.SysProcAttr.Credential, nil
}

// Unpack fills an empty folder of the server's account from an archive like that of [Config]. It is for tests that need
// a separate server.
func Unpack(archive, into string) error {
	runAs, err := serverUser("")
	if err != nil {
		return err
	}
	return unpack(job{Archive: archive, RunAs: runAs}, into)
}

// installed finds the programs once, because that takes several processes.
var installed = sync.OnceValues(func() (string, error) { return findBinaries(0) })

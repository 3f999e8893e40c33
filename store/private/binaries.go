package private

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	var others []int
	for _, dir := range dirs {
		switch found := majorOf(dir); {
		case found == 0:
		case found == major || major == 0 && found >= minMajor:
			return dir, nil
		default:
			others = append(others, found)
		}
	}
	missing := fmt.Sprintf("no PostgreSQL server of version %d or newer is installed", minMajor)
	if major != 0 {
		missing = fmt.Sprintf("the data was made by PostgreSQL %d, and no server of that version is installed", major)
	}
	slices.Sort(others)
	for i, found := range slices.Compact(others) {
		missing += []string{", only ", " and "}[min(i, 1)] + strconv.Itoa(found)
	}
	install := "install it"
	if command := installHint(major); command != "" {
		install += " with `" + command + "`"
	}
	return "", fmt.Errorf("%s; %s, or set DATABASE_URL to use another PostgreSQL", missing, install)
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
	dirs = append(dirs, output("pg_config", "--bindir"))
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
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); dir == "" || err != nil {
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

// installers are the commands that install a server, by the ID in os-release(5). The distributions that are derived from
// these have their IDs in ID_LIKE. VERSION is the major version.
var installers = map[string]string{
	"debian": "apt-get install postgresql-VERSION",
	"fedora": "dnf install postgresqlVERSION-server",
	"alpine": "apk add postgresqlVERSION",
	"arch":   "pacman -S postgresql",
	"suse":   "zypper install postgresqlVERSION-server",
}

// installHint returns the command that installs a PostgreSQL server of a major version or, for 0, of the platform's
// default version. It is empty on unknown platforms.
func installHint(major int) string {
	release, _ := os.ReadFile("/etc/os-release") // an error: unknown distribution
	return installCommand(runtime.GOOS, string(release), major, os.Geteuid() == 0)
}

// systemIDs matches the ID of a distribution, and the list ID_LIKE.
var systemIDs = regexp.MustCompile(`(?m)^ID(?:_LIKE)?=["']?([^"'\n]*)`)

func installCommand(goos, release string, major int, root bool) string {
	if goos == "darwin" {
		if major == 0 {
			major = 17 // Homebrew has no package without a version
		}
		return "brew install postgresql@" + strconv.Itoa(major)
	}
	version := strings.NewReplacer("VERSION", strconv.Itoa(major))
	if major == 0 {
		version = strings.NewReplacer("-VERSION", "", "VERSION", "")
	}
	sudo := "sudo "
	if root {
		sudo = ""
	}
	for _, ids := range systemIDs.FindAllStringSubmatch(release, -1) {
		for id := range strings.FieldsSeq(ids[1]) {
			if command, ok := installers[id]; ok {
				return sudo + version.Replace(command)
			}
		}
	}
	return ""
}

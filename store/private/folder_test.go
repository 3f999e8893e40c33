package private_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/private"
	"aiv/store/storetest"
)

// TestFirstStart: processes that start at once on a folder make one server, which others cannot reach and which loses
// nothing, and remove what an interrupted initdb left.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	// The name has what a URL must escape.
	parent := made(t, `mkdir 'a b+%20'; cd a*; touch aiv-private-postgresql; mkdir pg.partial-1`)
	config := private.Config{Dir: filepath.Join(parent, "a b+%20")}
	users := []*user{startUser(t, config), startUser(t, config)}
	p := start(t, config)
	defer p.Close()
	const started = `SELECT pg_postmaster_start_time()::text`
	for _, u := range users {
		equal(t, mustAsk(t, p.URL(), started), mustAsk(t, u.url(t), started), "start of another process's server")
	}

	if !isGone(filepath.Join(config.Dir, "pg.partial-1")) {
		t.Error("the leftover is still there")
	}
	for name, want := range map[string]os.FileMode{
		"pg": 0o700, "log": 0o700, "socket": 0o700, "socket/.s.PGSQL.5432": 0o700, "users.lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(config.Dir, name))
		must(t, err)
		equal(t, want, info.Mode().Perm(), "permissions of ", name)
	}
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "", "lc_collate": "C", "data_checksums": "on",
	} {
		equal(t, want, mustAsk(t, p.URL(), "SHOW "+name), name)
	}
	server := postmaster(config.Dir)
	if ps(server, "uid") == "0" {
		t.Error("the server runs as root")
	}
	for _, pid := range []int{server, supervisor(t, server)} {
		if ps(pid, "pgid") == ps(os.Getpid(), "pgid") {
			t.Errorf("process %d would get this terminal's signals", pid)
		}
	}
	for _, u := range users {
		u.end(t)
	}
}

// TestLongPath: the socket of a folder whose path is too long for sockets is in another private folder, which ends with
// the server.
func TestLongPath(t *testing.T) {
	t.Parallel()
	config := ephemeral(t)
	config.Dir = filepath.Join(filepath.Dir(config.Dir), strings.Repeat("long, ", 30), "data")
	u := startUser(t, config)
	mustAsk(t, u.url(t), `SELECT ''`)
	short, err := os.Readlink(filepath.Join(config.Dir, "socket"))
	must(t, err)
	info, err := os.Stat(short)
	must(t, err)
	equal(t, os.FileMode(0o700), info.Mode().Perm(), "permissions of the socket's folder")
	u.end(t)
	storetest.Eventually(t, "the socket's folder is gone", func() bool { return isGone(short) })
}

// TestStartIsRefused: the folder of an ephemeral server that does not start is removed.
func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	of9 := made(t, `touch aiv-private-postgresql; mkdir pg; echo 9 >pg/PG_VERSION`+ofServer("pg pg/PG_VERSION"))
	wrongSetting := ephemeral(t)
	wrongSetting.Settings = map[string]string{"shared_buffers": "many"}
	for _, test := range []struct {
		config private.Config
		want   string
	}{
		{private.Config{Dir: of9, Ephemeral: true}, of9 + " has the marker aiv-private-postgresql"},
		{wrongSetting, `invalid value for parameter "shared_buffers": "many"`},
		{private.Config{Dir: of9}, "the data was made by PostgreSQL 9, and no server of that version is installed"},
	} {
		if got := refused(t, test.config); !strings.Contains(got, test.want) {
			t.Errorf("got %s\nwant ... %s", got, test.want)
		}
	}
	if !isGone(wrongSetting.Dir) {
		t.Error("the folder is still there")
	}
}

func TestChoose(t *testing.T) {
	version := func(dir string) int { return map[string]int{"/a": 13, "/b": 12, "/d": 15, "/e": 16}[dir] }
	for _, test := range []struct {
		major int
		dirs  []string
		want  string // of the folder or the error
	}{
		{0, []string{"/a", "/c", "/d", "/e"}, "/d"},
		{16, []string{"/a", "/c", "/d", "/e"}, "/e"},
		{0, nil, "no PostgreSQL server of version 14 or newer is installed; install one"},
		{0, []string{"/a", "/b", "/c"}, "no PostgreSQL server of version 14 or newer is installed, only 12 and 13; install one"},
	} {
		dir, err := private.Choose(test.major, test.dirs, version)
		if got := fmt.Sprint(dir, err); !strings.HasPrefix(got, test.want) {
			t.Errorf("version %d of %v: got %s, want %s", test.major, test.dirs, got, test.want)
		}
	}
}

// TestSupervisorDoesNotStartSupervisors: a program that does not call RunSupervisorIfRequested must not start itself
// forever.
func TestSupervisorDoesNotStartSupervisors(t *testing.T) {
	t.Setenv(private.SupervisorEnv, "{}")
	if got := refused(t, private.Config{Dir: folder(t)}); !strings.Contains(got, "RunSupervisorIfRequested") {
		t.Errorf("got %v, want an error that names RunSupervisorIfRequested", got)
	}
}

// TestEnvironment: what libpq's variables require of other servers has no effect. A variable that pgx rejects ends the
// start, as it will not change.
func TestEnvironment(t *testing.T) {
	config := ephemeral(t)
	t.Setenv("PGTARGETSESSIONATTRS", "standby")
	t.Setenv("PGCHANNELBINDING", "require")
	start(t, config).Close()
	t.Setenv("PGSERVICE", "missing")
	if got := refused(t, config); !strings.Contains(got, "failed to read service") || strings.Contains(got, "deadline") {
		t.Errorf("got %s, want an error of the service", got)
	}
}

func TestDefaultDataDir(t *testing.T) {
	open, shut := folder(t), made(t, `chmod 700 .`)
	forShut := filepath.Join(shut, "aiv")
	if os.Geteuid() == 0 {
		forShut = "/var/lib/aiv" // postgres could not enter
	}
	for _, test := range []struct{ xdg, home, want string }{
		{open, "/nowhere", filepath.Join(open, "aiv")},
		{"relative", open, filepath.Join(open, ".local", "share", "aiv")},
		{shut, open, forShut},
	} {
		t.Setenv("XDG_DATA_HOME", test.xdg)
		t.Setenv("HOME", test.home)
		got, err := private.DefaultDataDir()
		must(t, err)
		equal(t, test.want, got, fmt.Sprintf("%+v", test))
	}
}

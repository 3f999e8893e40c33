package private_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/store/private"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// TestFirstStart: processes that start at once on a folder make one server, which others cannot reach and which loses
// nothing, and remove what an interrupted initdb left.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	config := private.Config{Dir: folder(t)}
	write(t, config.Dir, marker)
	leftover := filepath.Join(config.Dir, "pg.partial-1")
	mkdir(t, leftover)
	var users []*user
	for range 2 {
		users = append(users, startUser(t, config))
	}
	p := start(t, config)
	defer p.Close()
	const started = `SELECT pg_postmaster_start_time()::text`
	ours := mustAsk(t, p.URL(), started)
	for _, u := range users {
		if got := mustAsk(t, u.url(t), started); got != ours {
			t.Errorf("another process has the server of %s, this one that of %s", got, ours)
		}
	}

	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("the leftover is still there: %v", err)
	}
	modes := map[string]os.FileMode{}
	for _, name := range []string{"pg", "log", "socket", "socket/.s.PGSQL.5432", "users.lock"} {
		info, err := os.Stat(filepath.Join(config.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		modes[name] = info.Mode().Perm()
	}
	wantModes := map[string]os.FileMode{
		"pg": 0o700, "log": 0o700, "socket": 0o700, "socket/.s.PGSQL.5432": 0o700, "users.lock": 0o600,
	}
	if diff := cmp.Diff(wantModes, modes); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(config.Dir); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("the folder is open to others: %v, %v", info.Mode(), err)
	}
	settings := map[string]string{}
	wantSettings := map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"listen_addresses": "", "server_encoding": "UTF8", "lc_collate": "C", "TimeZone": "UTC", "data_checksums": "on",
	}
	var names []string
	for name := range wantSettings {
		names = append(names, name)
	}
	values := mustAsk(t, p.URL(), `SELECT string_agg(current_setting(name), E'\n' ORDER BY n) FROM unnest('{`+strings.Join(names, ",")+`}'::text[]) WITH ORDINALITY AS s (name, n)`)
	for i, value := range strings.Split(values, "\n") {
		settings[names[i]] = value
	}
	if diff := cmp.Diff(wantSettings, settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got, want := mustAsk(t, p.URL(), `SELECT current_user || '@' || current_database()`), "aiv@aiv"; got != want {
		t.Errorf("URL: got %s, want %s", got, want)
	}
	if got := ps(t, postmaster(config.Dir), "uid"); got == "0" {
		t.Errorf("the server runs as root")
	}
	for _, pid := range []int{postmaster(config.Dir), supervisor(t, postmaster(config.Dir))} {
		if got, ours := ps(t, pid, "pgid"), ps(t, os.Getpid(), "pgid"); got == ours {
			t.Errorf("process %d would get this terminal's signals", pid)
		}
	}
	for _, u := range users {
		u.end(t)
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	config := ephemeral(t)
	config.Dir = filepath.Join(filepath.Dir(config.Dir), strings.Repeat("long, ", 30), "data")
	p := start(t, config)
	mustAsk(t, p.URL(), `SELECT ''`)
	short, err := os.Readlink(filepath.Join(config.Dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(short)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder: %v, %v", info.Mode(), err)
	}
	p.Close()
	if _, err := os.Stat(short); !os.IsNotExist(err) {
		t.Errorf("the socket's folder is still there: %v", err)
	}
}

func TestUnsafeFoldersAreRefused(t *testing.T) {
	t.Parallel()
	foreign := folder(t)
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(foreign)
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(folder(t), "postgresql")
	if err := errors.Join(os.Mkdir(inner, 0o700), os.WriteFile(filepath.Join(inner, "aiv-private-postgresql"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	locked := folder(t)
	if err := os.Chmod(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	refused := ephemeral(t)
	refused.Settings = map[string]string{"shared_buffers": "many"}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	old := initialized(t).Dir
	if err := os.WriteFile(filepath.Join(old, "pg", "PG_VERSION"), []byte("13\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		name   string
		config private.Config
		root   bool // only root meets it
		want   string
	}{
		{"another program's folder", private.Config{Dir: foreign}, false,
			foreign + " is not empty and not a folder of aiv (it has thesis.txt)"},
		{"the parent of a private server's folder", private.Config{Dir: filepath.Dir(inner)}, false,
			filepath.Dir(inner) + " is not a folder of aiv, but " + inner + " is; choose that one"},
		{"a parent that the server's account cannot enter", private.Config{Dir: filepath.Join(locked, "data")}, true,
			"cannot enter " + locked},
		{"lasting data for an ephemeral server", private.Config{Dir: old, Ephemeral: true}, false,
			old + " has the marker aiv-private-postgresql"},
		{"a setting that PostgreSQL refuses", refused, false,
			`invalid value for parameter "shared_buffers": "many"`},
		{"a file", private.Config{Dir: filepath.Join(foreign, "thesis.txt")}, false, "is not a folder"},
		{"no server", private.WithServers(private.Config{Dir: folder(t)}, nil), false,
			"no PostgreSQL server of version 14 or newer is installed; install it"},
		{"old servers", private.WithServers(private.Config{Dir: folder(t)}, map[string]int{"/a": 13, "/b": 12, "/c": 0}), false,
			"no PostgreSQL server of version 14 or newer is installed, only 12 and 13; install it"},
		{"data of another server", private.WithServers(private.Config{Dir: old}, map[string]int{"/a": 15}), false,
			"the data was made by PostgreSQL 13, and no server of that version is installed, only 15; install it"},
		{"a program that is no supervisor", private.WithSupervisor(private.Config{Dir: filepath.Join(folder(t), "data"), Ephemeral: true}, program), false,
			"the supervisor ended without a message"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := private.Start(ctx, test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant ... %s", err, test.want)
			}
			if test.config.Ephemeral && test.config.Dir != old {
				if _, err := os.Stat(test.config.Dir); !os.IsNotExist(err) {
					t.Errorf("the folder is still there: %v", err)
				}
			}
		})
	}
	entries, err := os.ReadDir(foreign)
	if err != nil || len(entries) != 1 {
		t.Errorf("the other program's folder was changed: %v, %v", entries, err)
	}
	after, err := os.Stat(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t); is.Mode != was.Mode || is.Gid != was.Gid {
		t.Errorf("the other program's folder has mode %o and group %d, want %o and %d", is.Mode, is.Gid, was.Mode, was.Gid)
	}
}

// A program that does not call RunSupervisorIfRequested must not start itself forever.
func TestSupervisorDoesNotStartSupervisors(t *testing.T) {
	t.Setenv(private.SupervisorEnv, "{}")
	_, err := private.Start(t.Context(), private.Config{Dir: folder(t)})
	if err == nil || !strings.Contains(err.Error(), "RunSupervisorIfRequested") {
		t.Errorf("got %v, want an error that names RunSupervisorIfRequested", err)
	}
}

func TestCanceledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	config := ephemeral(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error)
	go func() {
		_, err := private.Start(ctx, config)
		started <- err
	}()
	storetest.Eventually(t, "a supervisor was started", func() bool {
		_, err := os.Stat(filepath.Join(config.Dir, "supervisor.log"))
		return err == nil
	})
	cancel()
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	storetest.Eventually(t, "the folder is gone", func() bool {
		_, err := os.Stat(config.Dir)
		return os.IsNotExist(err)
	})
}

func TestDefaultDataDir(t *testing.T) {
	open, shut := folder(t), folder(t)
	if err := os.Chmod(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	forShut := filepath.Join(shut, "aiv")
	if os.Geteuid() == 0 {
		forShut = "/var/lib/aiv" // postgres could not enter
	}
	for _, test := range []struct{ xdg, home, want string }{
		{open, "/nowhere", filepath.Join(open, "aiv")},
		{"", open, filepath.Join(open, ".local", "share", "aiv")},
		{"relative", open, filepath.Join(open, ".local", "share", "aiv")},
		{shut, open, forShut},
	} {
		t.Setenv("XDG_DATA_HOME", test.xdg)
		t.Setenv("HOME", test.home)
		got, err := private.DefaultDataDir()
		if err != nil || got != test.want {
			t.Errorf("XDG_DATA_HOME=%q HOME=%q: got %q, %v, want %q", test.xdg, test.home, got, err, test.want)
		}
	}
}

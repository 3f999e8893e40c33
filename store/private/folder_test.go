package private_test

import (
	"errors"
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
	dir := filepath.Join(parent, "a b+%20")
	users := []*user{startUser(t, dir), startUser(t, dir)}
	p := start(t, dir)
	defer p.Close()
	const started = `SELECT pg_postmaster_start_time()::text`
	for _, u := range users {
		equal(t, mustAsk(t, p.URL(), started), mustAsk(t, u.url(t), started), "start of another process's server")
	}

	if !isGone(filepath.Join(dir, "pg.partial-1")) {
		t.Error("the leftover is still there")
	}
	for name, want := range map[string]os.FileMode{
		"pg": 0o700, "log": 0o700, "socket": 0o700, "socket/.s.PGSQL.5432": 0o700, "server.lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		equal(t, want, info.Mode().Perm(), "permissions of ", name)
	}
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "", "lc_collate": "C", "data_checksums": "on",
	} {
		equal(t, want, mustAsk(t, p.URL(), "SHOW "+name), name)
	}
	server := postmaster(dir)
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
	dir := existing(t)
	long := filepath.Join(dir+"-", strings.Repeat("long, ", 30))
	must(t, private.MakeParents(long))
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(long)) })
	must(t, os.Rename(dir, long))
	dir = long
	u := startUser(t, dir)
	mustAsk(t, u.url(t), `SELECT ''`)
	short := private.SocketDir(dir)
	info, err := os.Stat(short)
	must(t, err)
	equal(t, os.FileMode(0o700), info.Mode().Perm(), "permissions of the socket's folder")
	u.end(t)
	storetest.Eventually(t, "the socket's folder is gone", func() bool { return isGone(short) })
}

func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	of9 := made(t, `touch aiv-private-postgresql; mkdir -m 700 pg; echo 9 >pg/PG_VERSION`+ofServer("pg pg/PG_VERSION"))
	wrong := existing(t)
	f, err := os.OpenFile(filepath.Join(wrong, "pg", "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString("work_mem = many\n")
	must(t, errors.Join(err, f.Close()))
	for _, test := range []struct {
		dir, want string
	}{
		{wrong, `invalid value for parameter "work_mem": "many"`},
		{of9, "the data was made by PostgreSQL 9, and no server of that version is installed"},
	} {
		if got := refused(t, test.dir); !strings.Contains(got, test.want) {
			t.Errorf("got %s\nwant ... %s", got, test.want)
		}
	}
}

// TestFindBinaries: PATH comes first, but not with a version that is too old.
func TestFindBinaries(t *testing.T) {
	path := os.Getenv("PATH")
	for version, found := range map[string]bool{"13.9": false, "14.0": true, "99devel": true, "": false} {
		dir := made(t, `for name in postgres initdb; do
			printf '#!/bin/sh\necho "$0 (PostgreSQL) `+version+`"\n' >$name
			chmod +x $name
		done`)
		t.Setenv("PATH", dir+":"+path)
		got, err := private.FindBinaries(0)
		must(t, err)
		equal(t, found, string(got) == dir, "the binaries of version ", version, " are used")
	}
}

// TestSupervisorDoesNotStartSupervisors: a program that does not call RunSupervisorIfRequested must not start itself
// forever.
func TestSupervisorDoesNotStartSupervisors(t *testing.T) {
	t.Setenv(private.SupervisorEnv, "{}")
	if got := refused(t, folder(t)); !strings.Contains(got, "RunSupervisorIfRequested") {
		t.Errorf("got %v, want an error that names RunSupervisorIfRequested", got)
	}
}

// TestEnvironment: what libpq's variables require of other servers has no effect.
func TestEnvironment(t *testing.T) {
	t.Setenv("PGTARGETSESSIONATTRS", "standby")
	t.Setenv("PGCHANNELBINDING", "require")
	p := start(t, existing(t))
	defer p.Close()
	mustAsk(t, p.URL(), `SELECT ''`)
}

package private_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aiv/store/private"
	"aiv/store/storetest"
)

// TestUsers: processes share a server, which stops with its last user, however that ends, keeps its data, and is
// restarted if it or its supervisor is killed.
func TestUsers(t *testing.T) {
	t.Parallel()
	config := initialized(t)
	mine := start(t, config)
	keep(t, mine.URL())
	pid := postmaster(config.Dir)
	other := startUser(t, config)
	url := other.url(t)
	if url != mine.URL() {
		t.Errorf("another process's URL: got %s, want %s", url, mine.URL())
	}
	mine.Close() // does not wait for the other user
	mustAsk(t, url, `SELECT ''`)
	if got := postmaster(config.Dir); got != pid {
		t.Errorf("the server was restarted: process %d, was %d", got, pid)
	}
	other.end(t)
	if running(t, pid) {
		t.Error("the server runs on after its last user's end")
	}

	killed := startUser(t, config)
	killed.url(t)
	pid = postmaster(config.Dir)
	kill9(t, killed.cmd.Process.Pid)
	storetest.Eventually(t, "the server stopped with its last user", func() bool { return !running(t, pid) })

	p := start(t, config)
	restarted := func(was int) {
		t.Helper()
		storetest.Eventually(t, "the server was restarted with its data", func() bool {
			word, err := ask(p.URL(), `SELECT word FROM kept`)
			return err == nil && word == "safe" && postmaster(config.Dir) != was
		})
		if running(t, was) {
			t.Error("the server runs on after its restart")
		}
	}
	pid = postmaster(config.Dir)
	kill9(t, pid)
	restarted(pid)
	pid = postmaster(config.Dir)
	kill9(t, supervisor(t, pid))
	restarted(pid)
	pid = postmaster(config.Dir)
	p.Close()
	if running(t, pid) {
		t.Error("the server runs on after its last user's Close")
	}
}

// TestPingWhileStarting: nothing connects to a server that is starting, which would start a process to refuse the
// connection. A crash recovery can take minutes.
func TestPingWhileStarting(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for _, d := range []string{"pg", "socket"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket", ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var accepted atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			conn.Close()
		}
	}()
	for _, test := range []struct {
		state     string
		connected bool
	}{{"starting", false}, {"ready   ", true}} {
		if err := os.WriteFile(filepath.Join(dir, "pg", "postmaster.pid"), []byte("1\n"+test.state+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := private.Ping(t.Context(), dir)
		if got := accepted.Load() > 0; err == nil || got != test.connected {
			t.Errorf("%s: connected %t, error %v; want %t", test.state, got, err, test.connected)
		}
	}
}

// TestEphemeralFolderIsRemoved: also if the folder was created again, with locks, while a process looked for them; if a
// child process that is being started has the descriptors of its parent, until it executes its program; and if the
// supervisor was killed.
func TestEphemeralFolderIsRemoved(t *testing.T) {
	t.Parallel()
	config := ephemeral(t)
	if err := os.Mkdir(config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"users.lock", "supervisor.lock"} {
		if err := os.WriteFile(filepath.Join(config.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, config)
	fd, err := private.DuplicateLock(p)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	pid := postmaster(config.Dir)
	p.Close()
	if running(t, pid) {
		t.Error("the server runs on")
	}
	if _, err := os.Stat(config.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}

	u := startUser(t, config)
	u.url(t)
	kill9(t, supervisor(t, postmaster(config.Dir)))
	u.end(t)
	if _, err := os.Stat(config.Dir); !os.IsNotExist(err) {
		t.Errorf("after the supervisor was killed: the folder is still there: %v", err)
	}
}

// Users start and end as fast as possible, so that many start while a supervisor stops the server, removes the folder
// or has not started. Each must get a connection and keep it.
func TestUsersComeWhileTheServerStops(t *testing.T) {
	t.Parallel()
	for _, config := range []private.Config{initialized(t), ephemeral(t)} {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					p, err := private.Start(ctx, config)
					cancel()
					if err != nil {
						t.Errorf("ephemeral %v: %v", config.Ephemeral, err)
						return
					}
					for range 2 {
						if _, err := ask(p.URL(), `SELECT ''`); err != nil {
							t.Errorf("ephemeral %v: %v", config.Ephemeral, err)
						}
					}
					p.Close()
				}
			})
		}
		wg.Wait()
	}
}

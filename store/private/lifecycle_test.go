package private_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
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
	dir := existing(t)
	mine := start(t, dir)
	mustAsk(t, mine.URL(), `SELECT lo_from_bytea(1, 'safe')::text`)
	pid := postmaster(dir)
	other := startUser(t, dir)
	url := other.url(t)
	equal(t, mine.URL(), url, "another process's URL")
	mine.Close() // does not wait for the other user
	mustAsk(t, url, `SELECT ''`)
	equal(t, pid, postmaster(dir), "the server was restarted: process")
	other.end(t)
	storetest.Eventually(t, "the server stopped after its last user's end", func() bool { return !running(pid) })

	killed := startUser(t, dir)
	killed.url(t)
	pid = postmaster(dir)
	kill9(t, killed.cmd.Process.Pid)
	storetest.Eventually(t, "the server stopped with its last user", func() bool { return !running(pid) })

	p := start(t, dir)
	for _, victim := range []string{"server", "supervisor"} {
		pid = postmaster(dir)
		if victim == "server" {
			kill9(t, pid)
		} else {
			kill9(t, supervisor(t, pid))
		}
		storetest.Eventually(t, "the server was restarted with its data after its "+victim+" was killed", func() bool {
			word, err := ask(p.URL(), `SELECT convert_from(lo_get(1), 'UTF8')`)
			return err == nil && word == "safe" && postmaster(dir) != pid
		})
		equal(t, false, running(pid), "the server runs on after its restart")
	}
	pid = postmaster(dir)
	closing := time.Now()
	p.Close()
	if time.Since(closing) < 10*time.Second { // it waits for no longer
		equal(t, false, running(pid), "the server runs on after its last user's Close")
	}
}

// TestStaleLocks: a server starts although the machine failed before the last one had written its process id, or another
// process of its account has that id.
func TestStaleLocks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return
	}
	dir := existing(t)
	start(t, dir).Close()
	owner, err := private.ServerUser(dir)
	must(t, err)
	other := exec.Command("sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
	must(t, other.Start())
	defer other.Wait()
	defer other.Process.Kill()
	startWithLocks := func(text string) {
		for _, name := range []string{"pg/postmaster.pid", "socket/.s.PGSQL.5432.lock"} {
			file := filepath.Join(dir, name)
			must(t, os.WriteFile(file, []byte(text), 0o600))
			if owner != nil {
				must(t, os.Chown(file, int(owner.Uid), int(owner.Gid)))
			}
		}
		start(t, dir).Close()
	}
	startWithLocks("")
	for _, state := range []string{"running", "ended and not waited for"} {
		startWithLocks(fmt.Sprintln(other.Process.Pid))
		equal(t, state == "running", running(other.Process.Pid), "the other process runs")
		must(t, other.Process.Kill())
	}
}

// TestUsersComeWhileTheServerStops: users start and end as fast as possible, so that many start while a supervisor
// stops the server or has not started. Each gets a connection and keeps it.
func TestUsersComeWhileTheServerStops(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	dir := existing(t)
	for range 4 {
		wg.Go(func() {
			for range 2 {
				p := start(t, dir)
				for range 2 {
					if _, err := ask(p.URL(), `SELECT ''`); err != nil {
						t.Error(err)
					}
				}
				p.Close()
			}
		})
	}
	wg.Wait()
}

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
	config := lasting(t)
	mine := start(t, config)
	mustAsk(t, mine.URL(), `SELECT lo_from_bytea(1, 'safe')::text`)
	pid := postmaster(config.Dir)
	other := startUser(t, config)
	url := other.url(t)
	equal(t, mine.URL(), url, "another process's URL")
	mine.Close() // does not wait for the other user
	mustAsk(t, url, `SELECT ''`)
	equal(t, pid, postmaster(config.Dir), "the server was restarted: process")
	other.end(t)
	storetest.Eventually(t, "the server stopped after its last user's end", func() bool { return !running(pid) })

	killed := startUser(t, config)
	killed.url(t)
	pid = postmaster(config.Dir)
	kill9(t, killed.cmd.Process.Pid)
	storetest.Eventually(t, "the server stopped with its last user", func() bool { return !running(pid) })

	p := start(t, config)
	for _, victim := range []string{"server", "supervisor"} {
		pid = postmaster(config.Dir)
		if victim == "server" {
			kill9(t, pid)
		} else {
			kill9(t, supervisor(t, pid))
		}
		storetest.Eventually(t, "the server was restarted with its data after its "+victim+" was killed", func() bool {
			word, err := ask(p.URL(), `SELECT convert_from(lo_get(1), 'UTF8')`)
			return err == nil && word == "safe" && postmaster(config.Dir) != pid
		})
		equal(t, false, running(pid), "the server runs on after its restart")
	}
	pid = postmaster(config.Dir)
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
	config := lasting(t)
	start(t, config).Close()
	_, owner, err := private.Command("postgres")
	must(t, err)
	other := exec.Command("sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
	must(t, other.Start())
	defer other.Wait()
	defer other.Process.Kill()
	startWithLocks := func(text string) {
		for _, name := range []string{"pg/postmaster.pid", "socket/.s.PGSQL.5432.lock"} {
			file := filepath.Join(config.Dir, name)
			must(t, os.WriteFile(file, []byte(text), 0o600))
			if owner != nil {
				must(t, os.Chown(file, int(owner.Uid), int(owner.Gid)))
			}
		}
		start(t, config).Close()
	}
	startWithLocks("")
	for _, state := range []string{"running", "ended and not waited for"} {
		startWithLocks(fmt.Sprintln(other.Process.Pid))
		equal(t, state == "running", running(other.Process.Pid), "the other process runs")
		must(t, other.Process.Kill())
	}
}

// TestEphemeralFolderIsRemoved: also if the folder was created again, with locks, while a process looked for them; if a
// child process that is being started has the descriptors of its parent, until it executes its program; and if the
// supervisor was killed.
func TestEphemeralFolderIsRemoved(t *testing.T) {
	t.Parallel()
	config := ephemeral(t)
	config.Dir = made(t, `touch users.lock supervisor.lock`)
	p := start(t, config)
	fd, err := private.DuplicateLock(p)
	must(t, err)
	defer syscall.Close(fd)
	pid := postmaster(config.Dir)
	p.Close()
	storetest.Eventually(t, "the server stopped and the folder is gone", func() bool { return !running(pid) && isGone(config.Dir) })

	u := startUser(t, config)
	u.url(t)
	kill9(t, supervisor(t, postmaster(config.Dir)))
	u.end(t)
	storetest.Eventually(t, "the folder is gone after the supervisor was killed", func() bool { return isGone(config.Dir) })
}

// TestLastUserLeavesWhileTheSupervisorDies: the last of several users that leave at once removes the folder, whichever
// lock of the killed supervisor the kernel releases first. The supervisor may get the users' lock while it dies.
func TestLastUserLeavesWhileTheSupervisorDies(t *testing.T) {
	t.Parallel()
	for round := range 300 {
		dir := folder(t)
		must(t, os.WriteFile(filepath.Join(dir, "aiv-ephemeral-postgresql"), nil, 0o600))
		locked := func(name string, how int) *os.File {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
			must(t, err)
			must(t, syscall.Flock(int(f.Fd()), how))
			return f
		}
		supervisor := []*os.File{locked("supervisor.lock", syscall.LOCK_EX), nil}
		var leaving sync.WaitGroup
		for range 1 + round%10 {
			users := locked("users.lock", syscall.LOCK_SH)
			leaving.Go(func() { private.LeaveEphemeral(dir, users) })
		}
		supervisor[1] = locked("users.lock", syscall.LOCK_EX)
		supervisor[round%2].Close()
		supervisor[1-round%2].Close()
		leaving.Wait()
		if !isGone(dir) {
			t.Fatalf("round %d: the folder is still there", round)
		}
	}
}

// TestUsersComeWhileTheServerStops: users start and end as fast as possible, so that many start while a supervisor
// stops the server, removes the folder or has not started. Each gets a connection and keeps it.
func TestUsersComeWhileTheServerStops(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for _, config := range []private.Config{lasting(t), ephemeral(t)} {
		for range 3 {
			wg.Go(func() {
				for range 2 {
					p := start(t, config)
					for range 2 {
						if _, err := ask(p.URL(), `SELECT ''`); err != nil {
							t.Errorf("ephemeral %v: %v", config.Ephemeral, err)
						}
					}
					p.Close()
				}
			})
		}
	}
	wg.Wait()
}

package private

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// supervisorEnv is the environment variable that contains the job of a supervisor as JSON.
const supervisorEnv = "AIV_PRIVATE_SUPERVISOR"

// supervisorLockFD is the file descriptor of the locked file that is passed to a supervisor.
const supervisorLockFD = 3

// job is the input of a supervisor. The process that starts it determines the values, because its errors are shown to
// the operator.
type job struct {
	Dir       string
	Binaries  string // folder of postgres and initdb
	Ephemeral bool
	Archive   string
	Settings  map[string]string
	RunAs     *osUser // nil: as the account of the supervisor
}

// newJob determines the input of a supervisor. A data folder can be read only by servers of the major version that
// created it.
func newJob(config Config) (job, error) {
	major, err := dataMajor(config.Dir)
	if err != nil {
		return job{}, err
	}
	binaries, err := findBinaries(major)
	if err != nil {
		return job{}, err
	}
	runAs, err := serverUser(config.Dir)
	if err != nil {
		return job{}, err
	}
	return job{
		Dir: config.Dir, Binaries: binaries, Ephemeral: config.Ephemeral, Archive: config.Archive, Settings: config.Settings, RunAs: runAs,
	}, nil
}

func supervisorLog(dir string) string { return filepath.Join(dir, "supervisor.log") }

// RunSupervisorIfRequested runs the supervisor of a private server if this process was started as one, and then does
// not return. Programs that call [Start] must call it first in main, and tests in TestMain.
func RunSupervisorIfRequested() {
	text := os.Getenv(supervisorEnv)
	if text == "" {
		return
	}
	// PostgreSQL must not inherit the lock.
	syscall.CloseOnExec(supervisorLockFD)
	// The kernel kills the server when the thread that started it ends.
	runtime.LockOSThread()
	// The supervisor ends after its users. At a system shutdown they receive these signals too, and may need the server
	// to finish.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = supervise(j)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// supervise runs the server until the last user has ended. It holds its locks until the process ends.
func supervise(j job) error {
	lock := os.NewFile(supervisorLockFD, supervisorLock)
	if lock == nil || !isFileAt(lock, filepath.Join(j.Dir, supervisorLock)) {
		return errors.New("only aiv itself can start a supervisor")
	}
	users, err := openLock(j.Dir, usersLock)
	if err != nil {
		return err
	}
	noUsers := make(chan error, 1)
	go func() { noUsers <- flock(users, syscall.LOCK_EX) }()

	err = keepRunning(j, noUsers)
	if err == nil {
		removeSocketDir(j.Dir)
	}
	if err == nil && j.Ephemeral {
		err = removeFolder(j.Dir)
	}
	runtime.KeepAlive(lock)
	runtime.KeepAlive(users)
	return err
}

// keepRunning runs the server, and restarts it after a crash, until noUsers receives: then the last user has ended.
func keepRunning(j job, noUsers <-chan error) error {
	socket, err := makeSocketDir(j)
	if err != nil {
		return err
	}
	if err := initialize(j); err != nil {
		return err
	}
	if err := stopOrphan(j.Dir); err != nil {
		return err
	}
	for quick := 1; ; quick++ {
		removeStaleLocks(j.Dir, socket) // again after each attempt: a new thread can have the id
		running, err := startServer(j, socket)
		if err != nil {
			return err
		}
		select {
		case err := <-noUsers:
			running.stop(j.Ephemeral)
			return err
		case <-running.ended:
		}
		fault, final := running.fault()
		if time.Since(running.began) > 30*time.Second {
			quick = 1
		}
		if final || quick == 12 {
			return fault
		}
		delay := min(50*time.Millisecond<<quick, 5*time.Second)
		fmt.Fprintf(os.Stderr, "aiv: %v; starting it again in %v\n", fault, delay)
		select {
		case err := <-noUsers:
			return err
		case <-time.After(delay):
		}
	}
}

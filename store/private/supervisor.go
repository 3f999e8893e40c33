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

// supervisorEnv holds the job, as JSON, of a process that is a supervisor.
const supervisorEnv = "AIV_PRIVATE_SUPERVISOR"

// supervisorLockFD is where the process that starts a supervisor passes it the
// locked file: the first after the standard ones.
const supervisorLockFD = 3

// job is all that a supervisor knows; the process that starts it finds it out,
// where a person reads its errors.
type job struct {
	Dir       string
	Binaries  string // folder of postgres and initdb
	Ephemeral bool
	Settings  map[string]string
	RunAs     *account // nil: as whoever runs the supervisor
}

// newJob finds what a supervisor needs. A data folder can only be read by
// servers of the major version that made it.
func newJob(config Config) (job, error) {
	major, err := dataMajor(config.Dir)
	if err != nil {
		return job{}, err
	}
	found, err := config.find(major)
	if err != nil {
		return job{}, err
	}
	runAs, err := serverAccount(config.Dir)
	if err != nil {
		return job{}, err
	}
	return job{
		Dir: config.Dir, Binaries: found.dir, Ephemeral: config.Ephemeral, Settings: config.Settings, RunAs: runAs,
	}, nil
}

func supervisorLog(dir string) string { return filepath.Join(dir, "supervisor.log") }

// SuperviseIfAsked makes this process the supervisor of a private server if it
// was started to be that, and then does not return. A program that calls
// [Start] calls it first thing in main; a test, in TestMain.
func SuperviseIfAsked() {
	text := os.Getenv(supervisorEnv)
	if text == "" {
		return
	}
	// The lock is this process's, not PostgreSQL's.
	syscall.CloseOnExec(supervisorLockFD)
	// The kernel kills the server when the thread that started it ends.
	runtime.LockOSThread()
	// Its users decide when it ends. They get these signals as well, of a
	// system that goes down, and may need the server to finish.
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

// supervise runs the server until the last user is gone. Its locks end with
// the process and not before, when everything is done.
func supervise(j job) error {
	lock := os.NewFile(supervisorLockFD, "supervisor.lock")
	if lock == nil || !isFileAt(lock, supervisorLock(j.Dir)) {
		return errors.New("a supervisor is started by aiv itself only")
	}
	users, err := openLock(usersLock(j.Dir))
	if err != nil {
		return err
	}
	deserted := make(chan error, 1)
	go func() { deserted <- flock(users, syscall.LOCK_EX) }()

	err = keepRunning(j, deserted)
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

// keepRunning starts the server, and again when it crashes, until deserted
// says that the last user is gone.
func keepRunning(j job, deserted <-chan error) error {
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
	var backoff backoff
	for {
		running, err := startServer(j, socket)
		if err != nil {
			return err
		}
		select {
		case err := <-deserted:
			running.stop(j.Ephemeral)
			return err
		case <-running.ended:
		}
		fault := running.fault()
		delay, again := backoff.next(fault, time.Since(running.began))
		if !again {
			return fault
		}
		fmt.Fprintf(os.Stderr, "aiv: %v; starting it again in %v\n", fault, delay)
		select {
		case err := <-deserted:
			return err
		case <-time.After(delay):
		}
	}
}

// backoff decides whether and when to start a server that ended.
type backoff struct{ quick int }

func (b *backoff) next(fault *serverFault, lived time.Duration) (time.Duration, bool) {
	if lived > 30*time.Second {
		b.quick = 0
	}
	b.quick++
	switch {
	case fault.leftovers:
		// Processes of a killed server need a moment to notice; their memory
		// and lock file are in the way until then.
		return 100 * time.Millisecond, b.quick < 150
	case fault.refused:
		return 0, false
	}
	delay := min(50*time.Millisecond<<min(b.quick, 10), 5*time.Second)
	return delay, b.quick < 12
}

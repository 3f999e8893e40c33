package private

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// supervisorEnv is the environment variable that contains the folder of a supervisor.
const supervisorEnv = "AIV_PRIVATE_SUPERVISOR"

// outcome is how a supervisor ended: with no fault if there was another one. A fault is not final if the server was
// killed, or if processes of a killed server still run: their shared memory and lock file prevent a start until they
// have ended.
type outcome struct {
	fault error
	final bool
}

// startSupervisor starts this program as a supervisor, in a new session, so that a terminal's signals do not reach the
// server.
func startSupervisor(dir string) (<-chan outcome, error) {
	path := "/proc/self/exe" // even if the file was replaced since the start, as upgrades and `go test` do
	if !exists(path) {
		path, _ = os.Executable() // after an error Start fails
	}
	var said bytes.Buffer // also by PostgreSQL, until that writes its own log
	cmd := &exec.Cmd{
		Path:        path,
		Args:        []string{filepath.Base(os.Args[0]), "private-postgresql-supervisor", dir}, // only for ps
		Env:         append(serverEnv(), supervisorEnv+"="+dir),
		Dir:         "/",
		Stderr:      &said,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	for fd := 3; fd < 1024; fd++ { // what this process has inherited, perhaps from root's shell
		syscall.CloseOnExec(fd)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	ended := make(chan outcome, 1)
	go func() {
		if cmd.Wait() == nil {
			ended <- outcome{}
			return
		}
		text := strings.ReplaceAll(strings.TrimSpace(said.String()), "\n", "; ")
		leftovers := strings.Contains(text, "shared memory block") || strings.Contains(text, "already exists")
		ended <- outcome{
			fault: errors.New(cmp.Or(text, cmd.ProcessState.String())),
			final: cmd.ProcessState.ExitCode() == 1 && !leftovers,
		}
	}()
	return ended, nil
}

// RunSupervisorIfRequested runs the supervisor of a private server if this process was started as one, and then does
// not return. Programs that call [Start] must call it first in main, and tests in TestMain.
func RunSupervisorIfRequested() {
	dir := os.Getenv(supervisorEnv)
	if dir == "" {
		return
	}
	// The kernel kills the server when the thread that started it ends.
	runtime.LockOSThread()
	// The supervisor ends after its users. At a system shutdown they receive these signals too, and may need the server
	// to finish.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	if err := supervise(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// supervise runs the server until it or its last user has ended. It keeps its lock until the process ends. If there is
// another supervisor it does nothing.
func supervise(dir string) error {
	runAs, err := ServerUser(dir)
	if err != nil {
		return err
	}
	if runAs != nil {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(int(runAs.Gid)), syscall.Setuid(int(runAs.Uid))); err != nil {
			return fmt.Errorf("give up the rights of root: %w", err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "server.lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("as user %d: %w", uidOf(runAs), err)
	}
	defer runtime.KeepAlive(lock)
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	binaries, err := binariesFor(dir)
	if err != nil {
		return err
	}
	if err := makePrivate(socketDir(dir)); err != nil {
		return err
	}
	addr := usersAddr(dir)
	os.Remove(addr.Name) // of a supervisor that was killed
	listener, err := net.ListenUnix("unix", addr)
	if err != nil {
		return fmt.Errorf("listen for users: %w", err)
	}
	err = binaries.run(dir, listener)
	if sockets := socketDir(dir); filepath.Dir(sockets) != dir {
		os.RemoveAll(sockets)
	}
	return err
}

// awaitUsers returns when the last user has ended. It leaves that user's connection open, like connections of users who
// come later; they wait for the end of the supervisor.
func awaitUsers(listener net.Listener, ready func() bool) (last net.Conn) {
	arrived, ended := make(chan net.Conn), make(chan net.Conn)
	go func() {
		for {
			if conn, err := listener.Accept(); err == nil {
				arrived <- conn
			} else { // too many open files
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	none := time.After(10 * time.Second) // if the process that started this one was killed
	for n := 0; ; {
		select {
		case conn := <-arrived:
			n, none = n+1, nil
			go func() {
				serve(conn, ready)
				ended <- conn
			}()
		case conn := <-ended:
			if n--; n == 0 {
				return conn
			}
			conn.Close()
		case <-none:
			return nil
		}
	}
}

// serve sends a user one byte when the server is ready. It returns when the user has ended.
func serve(conn net.Conn, ready func() bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for !ready() {
			if pause(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
		conn.Write([]byte{0})
	}()
	io.Copy(io.Discard, conn)
}

package private

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a running PostgreSQL.
type process struct {
	dir   string
	cmd   *exec.Cmd
	began time.Time
	spoke int64         // offset of its output in the supervisor's log
	ended chan struct{} // closed when it has ended
}

// startServer must be called on the supervisor's locked thread.
func startServer(j job, socket string) (*process, error) {
	s := &process{dir: j.Dir, began: time.Now(), ended: make(chan struct{})}
	if info, err := os.Stdout.Stat(); err == nil {
		s.spoke = info.Size()
	}
	s.cmd = serverCommand(j, "postgres", serverArgs(j, socket)...)
	dieWithParent(s.cmd.SysProcAttr, syscall.SIGQUIT)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	go func() {
		s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// stop ends all sessions and writes everything to disk. If that takes longer than 60 s, the next start recovers
// instead. An ephemeral server writes nothing.
func (s *process) stop(ephemeral bool) {
	if !ephemeral && s.signal(syscall.SIGINT, 60*time.Second) {
		return
	}
	if s.signal(syscall.SIGQUIT, 10*time.Second) {
		return
	}
	s.signal(syscall.SIGKILL, 10*time.Second)
}

func (s *process) signal(sig os.Signal, patience time.Duration) bool {
	s.cmd.Process.Signal(sig)
	select {
	case <-s.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// fault returns why the server ended, and whether it cannot run. The postmaster exits with 1 after a FATAL error. A server
// that was killed or stopped can be started again, as it can when processes of a killed server have ended: until then
// their shared memory and lock file prevent a start.
func (s *process) fault() (why error, final bool) {
	said := make([]byte, 1<<16)
	if log, err := os.Open(supervisorLog(s.dir)); err == nil {
		n, _ := log.ReadAt(said, s.spoke)
		said = said[:n]
		log.Close()
	}
	leftovers := bytes.Contains(said, []byte("shared memory block")) || bytes.Contains(said, []byte("lock file"))
	state := s.cmd.ProcessState
	if state.ExitCode() == 1 && !leftovers {
		return fmt.Errorf("postgres ended: %v; its log is in %s", state, serverLogDir(s.dir)), true
	}
	return fmt.Errorf("postgres ended: %v", state), false
}

// stopOrphan stops a server whose supervisor was killed, where the kernel does not (see dieWithParent). It only does so
// while the socket accepts connections, because postmaster.pid can be a leftover that names another process.
func stopOrphan(dir string) error {
	socket := socketLink(dir)
	if !listening(socket) {
		return nil
	}
	pid, err := serverPID(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && pid <= 1 {
		err = errors.New("postmaster.pid contains no process id")
	}
	if err == nil {
		err = quit(dir, pid)
	}
	if err != nil {
		return fmt.Errorf("stop the server that is still running: %w", err)
	}
	for deadline := time.Now().Add(15 * time.Second); listening(socket); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("could not stop the running server (pid %d)", pid)
		}
	}
	return nil
}

// serverPID returns the process id in postmaster.pid, or 0, which no process has, if the file has none.
func serverPID(dir string) (int, error) {
	f, err := openServerFile(dataDir(dir), "postmaster.pid")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var pid int
	if _, err := fmt.Fscanln(f, &pid); err != nil {
		return 0, nil
	}
	return pid, nil
}

// removeStaleLocks removes the lock files of a killed server if their process id is now another process's. PostgreSQL
// does not start while its account has any process or thread of that id. In a container that was killed and started
// again, this is often one of aiv. Without /proc, postmaster.pid stays. An empty one, of a server that was starting when
// the machine failed, would prevent every start.
func removeStaleLocks(dir, socket string) {
	os.Remove(filepath.Join(socket, socketName+".lock")) // a server that runs is known by postmaster.pid
	pid, err := serverPID(dir)
	if err != nil {
		return
	}
	process := fmt.Sprintf("/proc/%d", pid)
	data, dataErr := os.Stat(dataDir(dir))
	worksIn, err := os.Stat(process + "/cwd") // of a server, its data folder; of a process that ended, nothing
	elsewhere := err == nil && dataErr == nil && !os.SameFile(worksIn, data)
	ended := errors.Is(err, os.ErrNotExist) && exists(process)
	if pid == 0 || elsewhere || ended {
		os.Remove(filepath.Join(dataDir(dir), "postmaster.pid")) // if that fails, PostgreSQL reports the file
	}
}

// quit sends SIGQUIT as the server's account, which wrote the process id and could have written another's.
func quit(dir string, pid int) error {
	runAs, err := serverUser(dir)
	if err != nil {
		return err
	}
	return commandOfServer(job{RunAs: runAs}, "/bin/sh", "-c", fmt.Sprintf("kill -QUIT %d 2>/dev/null || true", pid)).Run()
}

func listening(socket string) bool {
	socket, err := filepath.EvalSymlinks(socket) // a long path does not fit
	if err != nil {
		return false
	}
	conn, err := net.Dial("unix", filepath.Join(socket, socketName))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

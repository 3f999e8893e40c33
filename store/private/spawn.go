package private

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// startSupervisor starts a supervisor, or returns nil if there is one. The channel receives an error when the
// supervisor gives up, and nil when it is killed.
//
// This process takes the supervisor's lock and passes the open file on, so that two processes cannot start one each.
func (p *Server) startSupervisor() (<-chan error, error) {
	lock, err := tryLock(p.config.Dir, supervisorLock, syscall.LOCK_EX)
	if lock == nil || err != nil {
		return nil, err
	}
	defer lock.Close()

	job, err := newJob(p.config)
	if err != nil {
		return nil, err
	}
	cmd, err := supervisorCommand(job)
	if err != nil {
		return nil, err
	}
	said, err := os.OpenFile(supervisorLog(job.Dir), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the supervisor's log: %w", err)
	}
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Stdout, cmd.Stderr = said, said
	p.config.Log.Info("starting private PostgreSQL", "dir", job.Dir, "binaries", job.Binaries)
	if err := cmd.Start(); err != nil {
		said.Close()
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		defer said.Close()
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && !exit.Exited() {
			ended <- nil
			return
		}
		ended <- errors.New(lastLines(said))
	}()
	return ended, nil
}

// supervisorCommand returns this program in a new session, so that a terminal's signals do not reach the server. It
// gets only the environment variables that a server needs, and thus none of aiv's secrets.
func supervisorCommand(job job) (*exec.Cmd, error) {
	path, err := selfPath()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path:        path,
		Args:        []string{filepath.Base(os.Args[0]), "private-postgresql-supervisor", job.Dir}, // only for ps
		Env:         append(serverEnv(), supervisorEnv+"="+string(text)),
		Dir:         "/",
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}, nil
}

// lastLines returns the last eight lines of a log as one line, for errors.
func lastLines(log *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(log, 0, 1<<20))
	lines := strings.Split(strings.TrimSpace("the supervisor ended: "+string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "; ")
}

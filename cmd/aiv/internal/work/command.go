package work

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"aiv/store/strictjson"
)

const (
	// exitTemporary is EX_TEMPFAIL of sysexits.h.
	exitTemporary = 75

	maxOutput = 5 << 20 // more than the JSON of any valid answer takes without white space
	maxStderr = 16 << 10
)

// outputLimits are the limits of the worker interface for a request, less what surrounds the answer of a single job.
var outputLimits = strictjson.Limits{Depth: 16 - 3, Values: 1_000_000 - 6}

// A Command is an Executor that starts a program for each job, with the JSON of the job as its input. What the program
// prints is the answer.
type Command struct {
	Args []string // the program, and its arguments

	killAfter time.Duration // how long after SIGTERM it gets SIGKILL; 0: 5 s
}

// Execute implements [Executor]. When ctx is done, it ends the process group of the command.
func (c Command) Execute(ctx context.Context, job Job) Outcome {
	stdout, stderr := &head{max: maxOutput}, &tail{max: maxStderr}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job.Raw), stdout, stderr
	// Its own process group, so that what it starts ends with it, and a Ctrl-C of the terminal reaches the worker
	// only.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killAfter := cmp.Or(c.killAfter, 5*time.Second)
	cmd.WaitDelay = killAfter // also for processes that the command leaves behind with its output
	var killAt time.Time      // set when the process group gets SIGTERM
	cmd.Cancel = func() error {
		killAt = time.Now().Add(killAfter)
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	err := cmd.Start()
	started := err == nil
	if started {
		err = cmd.Wait()
	}
	switch {
	// What the command has printed may be incomplete.
	case ctx.Err() != nil:
		if started {
			if killAt.IsZero() {
				cmd.Cancel() // the command had ended before, but maybe not the processes that it left behind
			}
			killGroup(cmd.Process.Pid, killAt)
		}
		return Released{}
	case !started:
		return Fatal{fmt.Errorf("the command cannot be started: %w", err)}
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok:
		return failed(exit, lastLine(stderr.b))
	// ErrWaitDelay: the command succeeded, and left a process behind that keeps its output open. The output up to
	// then counts.
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return Fatal{fmt.Errorf("run the command: %w", err)}
	case stdout.over:
		return invalidAnswer(fmt.Sprintf("the output is longer than %d bytes", maxOutput))
	}
	return printed(stdout.b)
}

// printed returns the outcome of a command that succeeded. The dispatcher checks the members of the answer.
func printed(output []byte) Outcome {
	switch {
	case len(output) == 0:
		return invalidAnswer("the output is empty")
	case !json.Valid(output):
		return invalidAnswer("the output is not JSON")
	}
	if _, err := strictjson.Parse(string(output), outputLimits); err != nil {
		return invalidAnswer("the output is not strict JSON: " + err.Error())
	}
	return Completed{Raw: output}
}

// failed returns the outcome of a command that exited with a status other than 0, or was ended by a signal from
// elsewhere.
func failed(exit *exec.ExitError, message string) Outcome {
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal()) // as shells count
	}
	if code == exitTemporary {
		return Retry{Code: "temporary", Message: message}
	}
	return Failed{fmt.Sprintf("exit_%d", code), message}
}

// killGroup waits until no process of a group is left, and sends SIGKILL to those that are left at the given time.
func killGroup(pid int, at time.Time) {
	for ; time.Now().Before(at); time.Sleep(20 * time.Millisecond) {
		// Signal 0 only checks whether the group has processes.
		if syscall.Kill(-pid, 0) != nil {
			return
		}
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

// lastLine returns the last line that is not blank, for the message of the job's error.
func lastLine(b []byte) string {
	text := strings.TrimRight(string(b), " \t\r\n")
	return strings.TrimSpace(printable(text[strings.LastIndexByte(text, '\n')+1:]))
}

// head keeps the beginning of what is written.
type head struct {
	b    []byte
	max  int
	over bool
}

// Write implements io.Writer. It takes everything, because an error would end the copying, and the command would then
// get SIGPIPE.
func (h *head) Write(p []byte) (int, error) {
	keep := min(len(p), h.max-len(h.b))
	h.b, h.over = append(h.b, p[:keep]...), h.over || keep < len(p)
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct {
	b   []byte
	max int
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

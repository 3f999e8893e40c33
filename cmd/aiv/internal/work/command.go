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
	"unicode/utf8"

	"aiv/store/strictjson"
)

const (
	// exitTemporary is EX_TEMPFAIL of sysexits.h.
	exitTemporary = 75

	maxOutput  = 5 << 20 // more than the JSON of any valid answer takes without white space
	maxStderr  = 16 << 10
	maxMessage = 2048 // characters
)

// outputLimits are those of the worker interface for a request, less what surrounds the answer of a single job.
var outputLimits = strictjson.Limits{Depth: 16 - 3, Values: 1_000_000 - 6}

// execute runs the command for a job and returns the settlement. It returns false if the job's lease is lost.
func (w *worker) execute(ctx context.Context, t *task) (settlement, bool) {
	if ctx.Err() != nil {
		return t.released(), true // claimed while the worker was asked to end
	}
	stdout, stderr := &head{max: maxOutput}, &tail{max: maxStderr}
	cmd := exec.CommandContext(t.ctx, w.cfg.Command[0], w.cfg.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(t.job), stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killAfter := cmp.Or(w.cfg.killAfter, 5*time.Second)
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
	case t.ctx.Err() != nil:
		if started {
			if killAt.IsZero() {
				cmd.Cancel() // the command had ended before, but maybe not the processes that it left behind
			}
			killGroup(cmd.Process.Pid, killAt)
		}
		return t.released(), context.Cause(t.ctx) != errLost
	case !started:
		w.fail(fmt.Errorf("the command cannot be started: %w", err))
		return t.released(), true
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok:
		return t.failed(exit, lastLine(stderr.b)), true
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		w.fail(fmt.Errorf("running the command: %w", err))
		return t.released(), true
	case stdout.over:
		return t.invalid(fmt.Sprintf("the output is longer than %d bytes", maxOutput)), true
	case len(stdout.b) == 0:
		return t.invalid("the output is empty"), true
	case !json.Valid(stdout.b):
		return t.invalid("the output is not JSON"), true
	}
	if _, err := strictjson.Parse(string(stdout.b), outputLimits); err != nil {
		return t.invalid("the output is not strict JSON: " + err.Error()), true
	}
	return t.settlement("completed", map[string]any{"answer": json.RawMessage(stdout.b)}), true
}

// killGroup waits until no process of a group is left, and sends SIGKILL to those that are left at the given time.
func killGroup(pid int, at time.Time) {
	for ; time.Now().Before(at); time.Sleep(20 * time.Millisecond) {
		if syscall.Kill(-pid, 0) != nil {
			return
		}
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

func (t *task) released() settlement { return t.settlement("released", nil) }

// failed returns the settlement for a command that exited with a status other than 0, or was ended by a signal from elsewhere.
func (t *task) failed(exit *exec.ExitError, message string) settlement {
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal()) // as shells count
	}
	if code == exitTemporary {
		return t.settlement("retry", map[string]any{"error": failure{"temporary", message}, "after_seconds": nil})
	}
	return t.settlement("failed", map[string]any{"error": failure{fmt.Sprintf("exit_%d", code), message}})
}

// invalid returns the settlement for an output that is no answer.
func (t *task) invalid(message string) settlement {
	return t.settlement("failed", map[string]any{"error": failure{"invalid_answer", printable(message)}})
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func lastLine(b []byte) string {
	text := strings.TrimRight(string(b), " \t\r\n")
	return strings.TrimSpace(printable(text[strings.LastIndexByte(text, '\n')+1:]))
}

// printable returns what the worker interface accepts of a text: UTF-8 without U+0000 and noncharacters, of bounded length.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == 0 || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	if r := []rune(text); len(r) > maxMessage {
		return string(r[:maxMessage])
	}
	return text
}

// head keeps the beginning of what is written.
type head struct {
	b    []byte
	max  int
	over bool
}

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

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startWork starts `aiv work` with a shell script as its command.
func startWork(t *testing.T, dispatch *process, token, script string, args ...string) *process {
	t.Helper()
	dir := t.TempDir()
	args = append(workArgs(t, dispatch, dir, token), args...)
	cmd := exec.Command(binary, append(args, "--", "sh", "-c", script)...)
	cmd.Env = append(os.Environ(), "DIR="+dir)
	w := launch(t, cmd)
	w.dir = dir
	return w
}

// workArgs writes a worker's token into a folder, and returns the arguments of aiv that every worker has.
func workArgs(t *testing.T, dispatch *process, dir, token string) []string {
	t.Helper()
	file := filepath.Join(dir, "token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return []string{"work", "-url", strings.TrimSuffix(dispatch.base, "/worker/v1"), "-token-file", file}
}

// TestWorkEnds: on SIGTERM a worker that waits for jobs ends at once. Others give back the jobs of commands that do not
// end, with their processes.
func TestWorkEnds(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch, token := startServe(t, url), startDispatch(t, url), newWorker(t, url).Token
	responses := func() float64 {
		return readExposition(t, dispatch.metrics(t)).values[`aiv_requests_total{route="POST /worker/v1/claim",status="200"}`]
	}
	idle := startWork(t, dispatch, token, `exit 1`)
	dispatch.awaitClaims(t, 1)
	before := responses()
	stops(t, idle)
	dispatch.awaitClaims(t, 0)
	if n := responses(); n != before {
		t.Error("the worker waited for the response to its claim before it ended")
	}

	run := serve.order(t, key.Key, "ends")
	// The shell outlives its child: a child that init has to reap stays in the process group until then.
	const child = `trap : TERM; sleep 600 & echo $! >"$DIR/pid.$$"; wait; wait`
	for drain, twice := range map[string]bool{"100ms": false, "10m": true} {
		w := startWork(t, dispatch, token, child, "-drain", drain, "-parallel", "2")
		left := func() string { return childrenLeft(w.dir) }
		wait(t, "the children", "2 of 2", left)
		if twice {
			w.cmd.Process.Signal(syscall.SIGTERM)
			w.awaitLog(t, "signal again to kill")
		}
		stops(t, w)
		wait(t, "the children after SIGTERM", "0 of 2", left)
		serve.awaitRun(t, key.Key, run, `"queued":6`)
	}
}

// childrenLeft returns how many of the processes with a file in the folder run.
func childrenLeft(dir string) string {
	files, _ := filepath.Glob(dir + "/pid.*")
	left := 0
	for _, f := range files {
		text, _ := os.ReadFile(f)
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			left++
		}
	}
	return fmt.Sprintf("%d of %d", left, len(files))
}

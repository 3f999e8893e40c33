package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The tests of aiv work come first by the names of their files, because they wait for leases while other tests run.

// answerScript is the command of a worker. What it does depends on the number of its job.
const answerScript = `
job=$(cat)
n=$(printf x >>"$DIR/count"; wc -c <"$DIR/count")
answer='{"text":"sample","citations":[{"url":"https://example.org/","title":null}],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}'
`

// A workProcess is `aiv work`.
type workProcess struct {
	cmd   *exec.Cmd
	dir   string // DIR of its commands
	log   *logBuffer
	ended chan error
}

// startWork starts `aiv work` with a shell script as its command.
func startWork(t *testing.T, dispatch *process, token, script string, args ...string) *workProcess {
	t.Helper()
	dir := t.TempDir()
	args = append(workArgs(t, dispatch, dir, token), args...)
	cmd := exec.Command(binary, append(args, "--", "sh", "-c", answerScript+script)...)
	cmd.Env = append(os.Environ(), "DIR="+dir)
	return startWorkProcess(t, cmd, dir)
}

// workArgs writes a worker's token into a folder, and returns the arguments of aiv that every worker has.
func workArgs(t *testing.T, dispatch *process, dir, token string) []string {
	t.Helper()
	file := filepath.Join(dir, "token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return []string{"work", "-url", strings.TrimSuffix(dispatch.base, "/worker/v1"), "-token-file", file}
}

// startWorkProcess starts a command, and reads its log if that goes nowhere else.
func startWorkProcess(t *testing.T, cmd *exec.Cmd, dir string) *workProcess {
	t.Helper()
	w := &workProcess{cmd, dir, &logBuffer{}, make(chan error, 1)}
	if cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = w.log, w.log
	}
	must(t, startCommand(cmd))
	go func() { w.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the end of the log of %s: %s", cmd, w.log.end())
		}
	})
	return w
}

// stop ends the process by SIGTERM and returns its exit error.
func (w *workProcess) stop() error {
	w.cmd.Process.Signal(syscall.SIGTERM)
	return <-w.ended
}

// order creates a run of six jobs and returns its id.
func order(t *testing.T, serve *process, key, idempotencyKey string) string {
	t.Helper()
	a, err := serve.do(t.Context(), "POST", "", key, idempotencyKey, testRun)
	if err != nil || a.status != 202 {
		t.Fatalf("creating a run: %v %v", a, err)
	}
	return member(t, a.body, "id")
}

// wait waits until what is read matches.
func wait(t *testing.T, what, pattern string, read func() string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		got := read()
		if re.MatchString(got) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: got %s, want %s", what, got[max(0, len(got)-1000):], pattern)
		}
	}
}

// TestCommandsBecomeOutcomes: a command's exit status and output become the outcomes of jobs.
func TestCommandsBecomeOutcomes(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	run := order(t, serve, key.Key, "work")
	w := startWork(t, dispatch, newWorker(t, url).Token, `
case $n in
1) printf '%s' "$job" | grep -q '"question":{"id":"q' && printf '%s' "$answer" ;;
2) echo first >&2; echo "  the last line" >&2; echo >&2; exit 3 ;;
3) echo not JSON ;;
4) printf '%s' "$answer" | sed 's/"text":"sample"/"text":17/' ;;
5) kill -9 $$ ;;
*) printf '%s' "$answer" ;;
esac`, "-parallel", "1")
	wait(t, "the run", `"status":"partial"`, func() string { return serve.get(t, "/v1/runs/"+run, key.Key).body })
	rows, err := pool.Query(t.Context(), `SELECT COALESCE(error_code || ': ' || error_message, 'completed') FROM job_results ORDER BY ordinal`)
	must(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	want := []string{"completed", "exit_3: the last line", "invalid_answer: the output is not JSON", "invalid_answer: text must be a string.*", "exit_137: ", "completed"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if !regexp.MustCompile("^" + want[i] + "$").MatchString(got[i]) {
			t.Errorf("job %d: got %q, want %q", i+1, got[i], want[i])
		}
	}
	if err := w.stop(); err != nil {
		t.Errorf("aiv work ended with %v", err)
	}
	if log := w.log.String(); !strings.Contains(log, `"msg":"worker started","dispatcher":"http://`) {
		t.Errorf("the log does not begin with what the worker claims: %s", log)
	}
}

// TestWorkLosesDispatcher: commands end when their leases do, although no dispatcher says so, and a worker that waits
// for jobs ends at once.
func TestWorkLosesDispatcher(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch, other := startServe(t, url), startDispatch(t, url), startDispatch(t, url)
	order(t, serve, key.Key, "lost")
	token := newWorker(t, url).Token
	const child = `trap 'echo ended >>"$DIR/ended"; wait; exit' TERM; echo started >>"$DIR/started"; sleep 600 & wait`
	w := startWork(t, dispatch, token, child, "-parallel", "6", "-lease", "10s")
	lines := func(file string) func() string {
		return func() string {
			text, _ := os.ReadFile(filepath.Join(w.dir, file))
			return fmt.Sprint(strings.Count(string(text), "\n"))
		}
	}
	wait(t, "started commands", "^6$", lines("started"))
	idle := startWork(t, other, token, `exit 1`)
	metrics := func() string {
		_, page := other.asAdmin(t, "GET", "/metrics", "")
		return page
	}
	wait(t, "waiting claims", `\naiv_claims_waiting 1\n`, metrics)
	responses := func() float64 {
		return readExposition(t, metrics()).values[`aiv_requests_total{route="POST /worker/v1/claim",status="200"}`]
	}
	before := responses()
	if err := idle.stop(); err != nil {
		t.Errorf("a waiting worker ended with %v", err)
	}
	wait(t, "waiting claims after the worker has ended", `\naiv_claims_waiting 0\n`, metrics)
	if n := responses(); n != before {
		t.Error("the worker waited for the response to its claim before it ended")
	}
	dispatch.kill()
	wait(t, "ended commands", "^6$", lines("ended"))
	if err := w.stop(); err != nil {
		t.Errorf("without a dispatcher aiv work ended with %v", err)
	}
}

// TestWorkEnds: SIGTERM gives back the jobs of commands that do not end, with their processes; a canceled run ends its
// commands.
func TestWorkEnds(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	run := order(t, serve, key.Key, "ends")
	// The shell outlives its child: a child that init has to reap stays in the process group until then.
	const child = `trap : TERM; sleep 600 & echo $! >"$DIR/pid.$$"; wait; wait`
	state := func() string { return serve.get(t, "/v1/runs/"+run, key.Key).body }
	gone := func(dir string) func() string {
		return func() string {
			files, _ := filepath.Glob(dir + "/pid.*")
			left := 0
			for _, f := range files {
				text, _ := os.ReadFile(f)
				var pid int
				fmt.Sscan(string(text), &pid)
				if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
					left++
				}
			}
			return fmt.Sprintf("%d of %d", left, len(files))
		}
	}

	w := startWork(t, dispatch, newWorker(t, url).Token, child, "-parallel", "2", "-drain", "100ms")
	wait(t, "the children", "2 of 2", gone(w.dir))
	if err := w.stop(); err != nil {
		t.Errorf("after SIGTERM aiv work ended with %v", err)
	}
	wait(t, "the children after SIGTERM", "0 of 2", gone(w.dir))
	wait(t, "the run after SIGTERM", `"queued":6`, state)

	w = startWork(t, dispatch, newWorker(t, url).Token, child, "-parallel", "2", "-drain", "10m")
	wait(t, "the children", "2 of 2", gone(w.dir))
	w.cmd.Process.Signal(syscall.SIGTERM)
	wait(t, "the first signal", "signal again to kill", w.log.String)
	if err := w.stop(); err != nil {
		t.Errorf("after a second SIGTERM aiv work ended with %v", err)
	}
	wait(t, "the children after a second SIGTERM", "0 of 2", gone(w.dir))
	wait(t, "the run after a second SIGTERM", `"queued":6`, state)

	w = startWork(t, dispatch, newWorker(t, url).Token, child, "-parallel", "6", "-lease", "10s")
	wait(t, "the children", "6 of 6", gone(w.dir))
	if a, err := serve.do(t.Context(), "POST", "/v1/runs/"+run+"/cancel", key.Key, "cancel", "{}"); err != nil || a.status != 200 {
		t.Errorf("canceling the run: %v %v", a, err)
	}
	wait(t, "the children of a canceled run", "0 of 6", gone(w.dir)) // after the next renewal of their leases
	if err := w.stop(); err != nil {
		t.Errorf("after the cancellation aiv work ended with %v", err)
	}
	if failed := number(t, pool, `SELECT count(*) FROM job_results WHERE NOT canceled`); failed > 0 {
		t.Errorf("%d jobs failed", failed)
	}
}

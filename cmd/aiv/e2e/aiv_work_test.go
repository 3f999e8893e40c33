package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/store"
	"aiv/store/storetest"
)

// startWork starts `aiv work` with a shell script as its command.
func startWork(t *testing.T, dispatch *process, token, script string, args ...string) *process {
	t.Helper()
	args = append(workArgs(t, dispatch, token), args...)
	cmd := exec.Command(binary, append(args, "--", "sh", "-c", script)...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "DIR="+dir)
	w := launch(t, cmd)
	w.dir = dir
	return w
}

// workArgs returns the arguments of aiv that every worker has.
func workArgs(t *testing.T, dispatch *process, token string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return []string{"work", "-url", strings.TrimSuffix(dispatch.base, "/worker/v1"), "-token-file", file}
}

// TestWorkEnds: on SIGTERM a worker that waits for jobs ends at once. Others give back the jobs of commands that do not
// end, with their processes, after -drain or at a second signal.
func TestWorkEnds(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch, token := startServe(t, url), startDispatch(t, url), newWorker(t, url).Token
	idle := startWork(t, dispatch, token, `exit 1`)
	dispatch.hasMetrics(t, "aiv_claims_waiting 1")
	before := dispatch.metrics(t)
	stops(t, idle)
	dispatch.hasMetrics(t, "aiv_claims_waiting 0")
	const responses = `aiv_requests_total{route="POST /worker/v1/claim",status="200"}`
	if samples(t, before)[responses] != samples(t, dispatch.metrics(t))[responses] {
		t.Error("the worker waited for the response to its claim before it ended")
	}

	run := serve.order(t, key.Key, "ends")
	for drain, twice := range map[string]bool{"100ms": false, "10m": true} {
		// The shell outlives its child: a child that init has to reap stays in the process group until then.
		w := startWork(t, dispatch, token, `trap : TERM; sleep 600 & echo $! >"$DIR/pid"; wait; wait`, "-drain", drain)
		running := func() string {
			pid, _ := os.ReadFile(w.dir + "/pid")
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
			return fmt.Sprint(len(pid) > 0 && err == nil && !strings.Contains(string(stat), ") Z "))
		}
		wait(t, "the child runs", "true", running)
		if twice {
			w.cmd.Process.Signal(syscall.SIGTERM)
			w.awaitLog(t, "signal again to kill")
		}
		stops(t, w)
		wait(t, "the child runs after SIGTERM", "false", running)
		serve.awaitRun(t, key.Key, run, `"queued":6`)
	}
}

// workScript answers each job with its id and attempt, and not while the file hold exists in the folder of its process.
const workScript = `
job=$(cat)
id=${job#*\"id\":\"}; id=${id%%\"*}
attempt=${job#*\"attempt\":}; attempt=${attempt%%,*}
sleep 0.05
while [ -e "$DIR/hold" ]; do : >"$DIR/held"; sleep 0.05; done
printf '{"text":"of %s in attempt %s","citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}' "$id" "$attempt"
`

// TestFaultWork kills aiv work processes that have jobs. Their jobs come back when the leases end, and every job is
// completed by one attempt. The short form ends the leases.
func TestFaultWork(t *testing.T) {
	t.Parallel()
	runs, kills := byForm(10, 200), byForm(1, 50)
	url, pool, _, key := databaseOfCustomer(t)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	workers, ids := make([]*process, 3), make([]store.ID, 3)
	start := func(i int) {
		made := newWorker(t, url)
		workers[i], ids[i] = startWork(t, dispatch, made.Token, workScript, "-parallel", "4", "-lease", byForm("10m", "10s")), made.ID
	}
	final := func() int { return number(t, pool, `SELECT count(*) FROM job_results`) }
	// hold holds a command of a worker: its job cannot be settled, not even by a request in flight when the process is
	// killed.
	hold := func(i int) {
		t.Helper()
		held := filepath.Join(workers[i].dir, "held")
		must(t, os.WriteFile(filepath.Join(workers[i].dir, "hold"), nil, 0o600))
		storetest.Eventually(t, "a command is held", func() bool {
			_, err := os.Stat(held)
			if err != nil && final() == 6*runs {
				t.Fatalf("all jobs were completed before %d processes that had jobs were killed", kills)
			}
			return err == nil
		})
	}
	start(0)
	for n := range runs {
		serve.order(t, key.Key, fmt.Sprint("work-", n))
	}
	hold(0) // before others can have all jobs
	start(1)
	start(2)
	var killed []store.ID
	settled := make(map[string]int) // attempts that an aiv work reported as settled, by job
	for n := range kills {
		i := n % len(workers)
		next := 6*runs*(n+1)/(kills+2) + rand.IntN(5)
		storetest.Eventually(t, "jobs are completed", func() bool { return final() >= next })
		hold(i)
		workers[i].kill()
		must(t, os.Remove(filepath.Join(workers[i].dir, "hold")))
		killed = append(killed, ids[i])
		workers[i].settlements(t, settled)
		start(i)
	}
	wait(t, "all jobs", fmt.Sprintf("^%d$", 6*runs), func() string {
		if !storetest.Long() {
			endLeases(t, pool, killed...)
		}
		return fmt.Sprint(final())
	})
	stops(t, workers...)
	for _, w := range workers {
		w.settlements(t, settled)
	}

	stored, lost := storedAnswers(t, pool, settled)
	again := 0
	for _, attempt := range stored {
		if attempt > 1 {
			again++
		}
	}
	if len(stored) != 6*runs || again == 0 {
		t.Errorf("%d jobs have an answer, want %d; %d were claimed again, want some", len(stored), 6*runs, again)
	}
	t.Logf("aiv work: %d kills: %d jobs completed, %d acknowledged, lost %d; %d were claimed again", kills, len(stored), len(settled), lost, again)
}

// settlements reads from the log which attempts were settled, by job. It reports jobs that were settled by two
// attempts.
func (w *process) settlements(t *testing.T, settled map[string]int) {
	t.Helper()
	for line := range strings.Lines(w.log.String()) {
		var l struct {
			ID, State string
			Attempt   int
		}
		if json.Unmarshal([]byte(line), &l) != nil || l.State != "settled" { // the last line of a killed process may be cut
			continue
		}
		if before, ok := settled[l.ID]; ok && before != l.Attempt {
			t.Errorf("job %s was settled in the attempts %d and %d", l.ID, before, l.Attempt)
		}
		settled[l.ID] = l.Attempt
	}
}

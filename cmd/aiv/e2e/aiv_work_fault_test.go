package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/store"
	"aiv/store/storetest"
)

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
		id, err := store.ParseID("wrk", made.ID)
		must(t, err)
		workers[i], ids[i] = startWork(t, dispatch, made.Token, workScript, "-parallel", "4", "-lease", byForm("10m", "10s")), id
	}
	file := func(i int, name string) string { return filepath.Join(workers[i].dir, name) }
	start(0)
	must(t, os.WriteFile(file(0, "hold"), nil, 0o600))
	for n := range runs {
		serve.order(t, key.Key, fmt.Sprint("work-", n))
	}
	storetest.Eventually(t, "a command is held", func() bool { return exists(file(0, "held")) }) // before others can have all jobs
	start(1)
	start(2)
	final := func() int { return number(t, pool, `SELECT count(*) FROM job_results`) }
	var killed []store.ID
	settled := make(map[string]int) // attempts that an aiv work reported as settled, by job
	for n := range kills {
		i := n % len(workers)
		next := 6*runs*(n+1)/(kills+2) + rand.IntN(5)
		storetest.Eventually(t, "jobs are completed", func() bool { return final() >= next })
		// A command that is held has a job that cannot be settled, not even by a request in flight when the process is killed.
		hold, held := file(i, "hold"), file(i, "held")
		must(t, os.WriteFile(hold, nil, 0o600))
		storetest.Eventually(t, "a command is held", func() bool { return exists(held) || final() == 6*runs })
		if !exists(held) {
			t.Fatalf("all jobs were completed before %d processes that had jobs were killed", kills)
		}
		workers[i].kill()
		must(t, os.Remove(hold))
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
	for _, w := range workers {
		w.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, w := range workers {
		must(t, w.wait())
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

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
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

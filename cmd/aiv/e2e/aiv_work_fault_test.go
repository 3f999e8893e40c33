package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// workScript answers each job with its id and attempt.
const workScript = `
id=${job#*\"id\":\"}; id=${id%%\"*}
attempt=${job#*\"attempt\":}; attempt=${attempt%%,*}
sleep 0.05
printf '{"text":"of %s in attempt %s","citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}' "$id" "$attempt"
`

// TestFaultWork kills aiv work processes that have jobs. Their jobs come back when the leases end, and every job is
// completed by one attempt. The short form ends the leases.
func TestFaultWork(t *testing.T) {
	t.Parallel()
	runs, kills := byForm(10, 200), byForm(1, 50)
	url, pool, _, key := databaseOfCustomer(t, 1_000_000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	workers, ids := make([]*workProcess, 3), make([]store.ID, 3)
	start := func(i int) {
		made := newWorker(t, url)
		id, err := store.ParseID("wrk", made.ID)
		must(t, err)
		workers[i], ids[i] = startWork(t, dispatch, made.Token, workScript, "-parallel", "4", "-lease", "10s"), id
	}
	for i := range workers {
		start(i)
	}
	for n := range runs {
		order(t, serve, key.Key, fmt.Sprint("work-", n))
	}
	final := func() int { return number(t, pool, `SELECT count(*) FROM job_results`) }
	var killed []store.ID
	settled := make(map[string]string) // attempts that an aiv work reported as settled, by job
	lost := 0
	for n, i := 0, 0; n < kills; i = (i + 1) % len(workers) {
		next := 6*runs*(n+1)/(kills+2) + rand.IntN(5)
		storetest.Eventually(t, "jobs are completed", func() bool { return final() >= next })
		workers[i].cmd.Process.Kill()
		<-workers[i].ended
		killed = append(killed, ids[i])
		workers[i].settlements(t, settled)
		if number(t, pool, `SELECT count(*) FROM job_leases WHERE worker_id = $1`, ids[i]) > 0 {
			n++
		} else if final() == 6*runs {
			t.Fatalf("all jobs were completed before %d processes that had jobs were killed", kills)
		}
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
		if err := <-w.ended; err != nil {
			t.Errorf("aiv work ended with %v", err)
		}
		w.settlements(t, settled)
	}

	rows, err := pool.Query(t.Context(), `SELECT attempts, COALESCE(answer, error_code) FROM job_results`)
	must(t, err)
	stored := make(map[string]string)
	var attempts int
	var answer string
	again := 0
	if _, err := pgx.ForEachRow(rows, []any{&attempts, &answer}, func() error {
		_, text, _ := strings.Cut(answer, `"text":"of `)
		id, attempt, _ := strings.Cut(text, " in attempt ")
		attempt, _, _ = strings.Cut(attempt, `"`)
		if stored[id] = attempt; attempt != fmt.Sprint(attempts) {
			t.Errorf("a job that was claimed %d times has %s", attempts, answer)
		}
		if attempts > 1 {
			again++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for id, attempt := range settled {
		if stored[id] != attempt {
			lost++
			t.Errorf("job %s was settled in attempt %s; the database has attempt %q", id, attempt, stored[id])
		}
	}
	if len(stored) != 6*runs || again == 0 {
		t.Errorf("%d jobs have an answer, want %d; %d were claimed again, want some", len(stored), 6*runs, again)
	}
	t.Logf("aiv work: %d kills: %d jobs completed, %d acknowledged, lost %d; %d were claimed again", kills, len(stored), len(settled), lost, again)
}

// settlements reads from the log which attempts were settled, by job. It reports jobs that were settled by two
// attempts.
func (w *workProcess) settlements(t *testing.T, settled map[string]string) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(w.log.String())); lines.Scan(); {
		var l struct {
			ID, State string
			Attempt   json.Number
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.State != "settled" { // the last line of a killed process may be cut
			continue
		}
		if before, ok := settled[l.ID]; ok && before != string(l.Attempt) {
			t.Errorf("job %s was settled in the attempts %s and %s", l.ID, before, l.Attempt)
		}
		settled[l.ID] = string(l.Attempt)
	}
}

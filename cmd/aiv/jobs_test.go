package main

import (
	"regexp"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestRunsAreListedAndCanceled: runs of all accounts are listed, shown and canceled, and their jobs listed.
func TestRunsAreListedAndCanceled(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.prints(t, "runs list", "No runs match.\n")
	account := s.newAccount(t)
	pool := connect(t, s.url())
	writeRun(t, pool, account, "2026-03-01T00:00:00Z", 1)
	storetest.Exec(t, pool, `INSERT INTO providers (code, name) VALUES ('acme', 'Acme')`)
	found := prints{"runs list -status queued", 0, `\tqueued\t1\t0\t0\t0\t0\t2026-03-01T00:00:00Z`}.expect(t, s.url())
	id := runID.FindString(found)
	for _, command := range []prints{
		{"runs show " + id + " -json", 0, `"account_id":"acct_\w+","run":\{"id":"` + id},
		{"jobs list", 0, `\tqueued\t0\tnone`},
		{"jobs list -state running -run " + id, 0, `^No jobs match\.\n$`},
		{"jobs list -provider nope", 1, `aiv: there is no provider "nope"; see aiv providers list\n`},
		{"jobs list -provider acme", 0, `^No jobs of queued or running runs match; -run lists the jobs of any run\.\n$`},
		{"runs cancel " + id, 0, "is canceled: 0 queued, 0 running, 0 completed, 0 failed, 1 canceled"},
		{"runs cancel " + id, 0, "is canceled"},
		{"audit list -subject " + id, 0, `runs\.cancel`},
	} {
		command.expect(t, s.url())
	}
	// Answers so large that a page ends before the limit.
	writeRun(t, pool, account, "2026-03-02T00:00:00Z", 10)
	storetest.Exec(t, pool, `
		WITH ended AS (
		  UPDATE measurement_runs SET status = 'partial', started_at = created_at, finished_at = created_at, jobs_completed = 9, jobs_failed = 1
		  WHERE total_jobs = 10 RETURNING account_id, id)
		INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer, error_code, error_message)
		SELECT account_id, id, n, 1, true, now(), now(), CASE WHEN n > 1 THEN json_build_object('text', repeat('x', 1000000)) END,
		  CASE WHEN n = 1 THEN 'exit_1' END, CASE WHEN n = 1 THEN 'no answer' END
		FROM ended, generate_series(1, 10) n`)
	id = runID.FindString(prints{"runs list -status partial", 0, "run_"}.expect(t, s.url()))
	for flags, want := range map[string]int{"": 10, " -limit 7": 7} {
		jobs := prints{"jobs list -json -run " + id + flags, 0, "job_"}.expect(t, s.url())
		equal(t, want, strings.Count(jobs, `"status":`), "listed jobs")
	}
	const absent = "run_01k3s4x0a1fvt8s9w2y7b6c5d4"
	for _, command := range []prints{
		{"jobs list -json -state failed -run " + id, 0,
			`"status":"failed","attempts":1,"error_code":"exit_1","error_message":"no answer","started_at"`},
		{"runs cancel " + absent, 1, "aiv: there is no run " + absent + "; see aiv runs list\n"},
	} {
		command.expect(t, s.url())
	}
}

var runID = regexp.MustCompile(`run_\w+`)

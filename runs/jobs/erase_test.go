package jobs_test

import (
	"testing"

	"aiv/runs"
	"aiv/runs/jobs"
)

// TestDeleteRuns deletes the runs of an account while its jobs are queued, held and settled. A late settlement is not
// taken, and another account's jobs are handed out as before.
func TestDeleteRuns(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	a, b := s.account(t), s.account(t)
	for range 3 {
		s.createRun(t, a, []string{"m1", "m2"}, 2, 2)
	}
	held := claim(t, d, 5)
	settle(t, d, jobs.Completed, held[0])
	settle(t, d, jobs.Retry, held[1])
	s.createRun(t, a, []string{"m1"}, 1, 1) // has arrived
	other := s.createRun(t, b, []string{"m1"}, 1, 2)

	p := purger(s.pool)
	purged, err := p.Account(t.Context(), a)
	must(t, err)
	equal(t, runs.Purged{Runs: 4, Jobs: 25}, purged)
	s.check(t)
	for _, table := range []string{"job_arrivals", "job_queue", "job_leases", "job_results", "job_attempts"} {
		equal(t, 0, s.count(t, `SELECT count(*) FROM `+table+` WHERE account_id = $1`, a), table)
	}
	for _, state := range settle(t, d, jobs.Completed, held[2:]...) {
		if state == jobs.Settled {
			t.Error("a job of a deleted run was settled")
		}
	}
	settle(t, d, jobs.Released, claim(t, d, 1)...) // the other account has a turn
	must(t, ignore(jobs.EraseTurns(t.Context(), s.pool, "job_turns", a)))
	if n, others := s.count(t, `SELECT count(*) FROM job_turns WHERE account_id = $1`, a), s.count(t, `SELECT count(*) FROM job_turns`); n != 0 || others != 1 {
		t.Errorf("%d turns of the account and %d in all are left, want 0 and 1", n, others)
	}
	settle(t, d, jobs.Completed, claim(t, d, 10)...)
	equal(t, "completed", s.run(t, other).Status, "the other account's run")
}

package jobs_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/runs/jobs"
	"aiv/store/storetest"
)

// TestCanceledWhileClaimed: a run is canceled by a transaction for which a claim waits. The claim hands out and counts none of its jobs.
// Jobs claimed before become canceled results and keep their attempts.
func TestCanceledWhileClaimed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	account := s.account(t)
	run := s.createRun(t, account, []string{"m1"}, 5, 1)
	settle(t, d, jobs.Released, claim(t, d, 3)...)

	claimed := make(chan []jobs.Job, 1)
	must(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT cancel_run($1, $2)`, account, run); err != nil {
			return err
		}
		go func() { claimed <- claim(t, d, 5) }()
		storetest.UntilWaiting(t, s.pool, "transactionid")
		return nil
	}))
	if got := <-claimed; len(got) > 0 {
		t.Errorf("%d jobs of a canceled run are handed out", len(got))
	}
	if got := claim(t, d, 5); len(got) > 0 { // admits the cancellation
		t.Errorf("%d jobs of a canceled run are handed out later", len(got))
	}
	if n := s.count(t, `SELECT count(*) FROM job_results WHERE canceled AND attempts = 1`); n != 3 {
		t.Errorf("%d canceled results, want 3", n)
	}
	if n := s.count(t, `SELECT count(*) FROM job_leases`); n != 0 {
		t.Errorf("%d leases of a canceled run", n)
	}
	if n := d.Stats().Claimed["p1"]; n != 3 {
		t.Errorf("%d claims were counted, want 3", n)
	}
}

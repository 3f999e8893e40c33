package jobs_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs/jobs"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
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

// TestCompletedBeforeCancel: to an attempt that lost its lease, a job that another attempt has completed before its run was canceled is lost
// or stale, and the run's other job is canceled.
func TestCompletedBeforeCancel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	first := claim(t, d, 2)
	s.pass(t, 2*time.Minute)
	_, err := d.Sweep(t.Context())
	must(t, err)
	settle(t, d, jobs.Completed, claim(t, d, 2)[0])
	s.cancel(t, run)
	renewed, err := d.Renew(t.Context(), nil, time.Minute, []jobs.Renewal{{Key: first[0].Key, Attempt: 1}, {Key: first[1].Key, Attempt: 1}})
	must(t, err)
	got := append(settle(t, d, jobs.Completed, first...), renewed[0].State, renewed[1].State)
	if diff := cmp.Diff([]string{"stale", "canceled", "lost", "canceled"}, got); diff != "" {
		t.Errorf("settled and renewed (-want +got):\n%s", diff)
	}
}

// TestCanceledBeforeQueued: a run that is canceled before a dispatcher has queued its jobs takes no place in a claim from a later run.
func TestCanceledBeforeQueued(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	account := s.account(t)
	s.cancel(t, s.createRun(t, account, []string{"m1"}, 1, 1))
	later := s.createRun(t, account, []string{"m1"}, 1, 1)
	if got := claim(t, s.dispatcher(t), 1); len(got) != 1 || got[0].Key.Run != later {
		t.Errorf("claimed %+v, want the job of the later run", got)
	}
	s.check(t)
}

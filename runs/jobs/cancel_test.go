package jobs_test

import (
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestCanceledWhileClaimed: a run is canceled by a transaction for which a claim waits. The claim hands out and counts
// none of its jobs, whether they were given back or are fresh. Jobs claimed before become canceled results and keep their
// attempts.
func TestCanceledWhileClaimed(t *testing.T) {
	t.Parallel()
	for _, givenBack := range []bool{true, false} {
		s, d := start(t)
		account := s.account(t)
		run := s.createRun(t, account, []string{"m1"}, 5, 1)
		if first := claim(t, d, 3); givenBack {
			settle(t, d, jobs.Released, first...)
		}
		cancel := begin(t, s.pool, `SELECT cancel_run($1, $2)`, account, run)
		claimed := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 2, Lease: time.Minute})
		storetest.UntilWaiting(t, s.pool, "transactionid")
		must(t, cancel.Commit(t.Context()))
		equal(t, 0, len((<-claimed).jobs), "jobs of a canceled run are handed out")
		s.wantCanceled(t, d, run, 3)
		equal(t, 3, d.Stats().Claimed["p1"], "claims were counted")
		if n := s.count(t, `SELECT count(*) FROM job_leases`); n != 0 && givenBack {
			t.Errorf("%d leases of a canceled run", n)
		}
	}
}

// TestCanceledBeforeStarted: the jobs of a run are queued while the run is being canceled. A claim that has read them
// hands out none of them, whether it finds the run canceled or waits for that.
func TestCanceledBeforeStarted(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	for name, waitsForTurn := range map[string]bool{"waits": false, "finds": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := start(t)
			account := s.account(t)
			run := s.createRun(t, account, []string{"m1", "m3"}, 2, 1)
			cancel := begin(t, s.pool, `SELECT cancel_run($1, $2)`, account, run)
			sweep(t, d) // queues the jobs
			turn := begin(t, s.pool, `SELECT FROM job_turns WHERE $1 FOR UPDATE`, waitsForTurn)
			// All jobs of a model, and a part of the other's.
			claimed := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 3, Lease: time.Minute})
			storetest.UntilWaiting(t, s.pool, "transactionid")
			must(t, cancel.Commit(t.Context()))
			must(t, turn.Rollback(t.Context()))
			equal(t, 0, len((<-claimed).jobs), "jobs of a canceled run are handed out")
			s.wantCanceled(t, d, run, 0)
		})
	}
}

// TestCancelWaitsForClaim: a run is canceled after a claim that is taking jobs of it, so that these keep their
// attempts.
func TestCancelWaitsForClaim(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	s, d := start(t)
	account := s.account(t)
	run := s.createRun(t, account, []string{"m1"}, 5, 1)
	claim(t, d, 1)
	// A writer of the lease that begins with the second job waits until the end of this transaction.
	hold := begin(t, s.pool, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
VALUES ($1, $2, 2, 2, 'p1', now(), 'held', 1, 0, now(), now(), $2)`, account, run)
	claimed := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 2, Lease: time.Minute})
	claiming := storetest.UntilWaiting(t, s.pool, "transactionid")
	canceled := make(chan struct{})
	go func() {
		defer close(canceled)
		s.cancel(t, run)
	}()
	s.untilBlockedBy(t, "the cancellation", claiming)
	must(t, hold.Rollback(t.Context()))
	if a := <-claimed; a.err != nil || len(a.jobs) != 2 {
		t.Errorf("%d jobs, %v; want 2", len(a.jobs), a.err)
	}
	<-canceled
	s.wantCanceled(t, d, run, 3)
}

// wantCanceled checks that no more jobs of a canceled run are claimed, and that as many keep their first attempt.
func (s *site) wantCanceled(t *testing.T, d *jobs.Dispatcher, run store.ID, attempts int) {
	t.Helper()
	equal(t, 0, len(claim(t, d, 2)), "jobs of a canceled run are handed out later") // admits the cancellation
	equal(t, attempts, s.count(t, `SELECT count(*) FROM job_results WHERE canceled AND attempts = 1 AND run_id = $1`, run),
		"canceled results")
}

// TestCompletedBeforeCancel: to an attempt that lost its lease, a job that another attempt has completed before its run
// was canceled is lost or stale, and the run's other job is canceled.
func TestCompletedBeforeCancel(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	first := claim(t, d, 2)
	s.pass(t, 2*time.Minute)
	sweep(t, d)
	settle(t, d, jobs.Completed, claim(t, d, 2)[0])
	s.cancel(t, run)
	equal(t, []string{"stale", "canceled"}, settle(t, d, jobs.Completed, first...))
	equal(t, []string{"lost", "canceled"}, renew(t, d, time.Minute, first...))
}

// TestCanceledBeforeQueued: a run that is canceled before a dispatcher has queued its jobs takes no place in a claim
// from a later run.
func TestCanceledBeforeQueued(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	account := s.account(t)
	s.cancel(t, s.createRun(t, account, []string{"m1"}, 1, 1))
	later := s.createRun(t, account, []string{"m1"}, 1, 1)
	if got := claim(t, s.dispatcher(t), 1); len(got) != 1 || got[0].Key.Run != later {
		t.Errorf("claimed %+v, want the job of the later run", got)
	}
}

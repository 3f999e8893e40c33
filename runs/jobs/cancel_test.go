package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// TestCanceledWhileClaimed: a run is canceled by a transaction for which a claim waits. The claim hands out and counts
// none of its jobs, whether they were given back or are fresh. Jobs claimed before become canceled results and keep their
// attempts.
func TestCanceledWhileClaimed(t *testing.T) {
	t.Parallel()
	for _, givenBack := range []bool{true, false} {
		s := newSite(t)
		d := s.dispatcher(t)
		account := s.account(t)
		run := s.createRun(t, account, []string{"m1"}, 5, 1)
		if first := claim(t, d, 3); givenBack {
			settle(t, d, jobs.Released, first...)
		}
		claimed := make(chan []jobs.Job, 1)
		must(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT cancel_run($1, $2)`, account, run); err != nil {
				return err
			}
			go func() { claimed <- claim(t, d, 2) }()
			storetest.UntilWaiting(t, s.pool, "transactionid")
			return nil
		}))
		if got := <-claimed; len(got) > 0 {
			t.Errorf("%d jobs of a canceled run are handed out", len(got))
		}
		s.wantCanceled(t, d, run, 3)
		if n := d.Stats().Claimed["p1"]; n != 3 {
			t.Errorf("%d claims were counted, want 3", n)
		}
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
			s := newSite(t)
			d := s.dispatcher(t)
			account := s.account(t)
			run := s.createRun(t, account, []string{"m1", "m3"}, 2, 1)
			claimed := make(chan []jobs.Job, 1)
			turn, err := s.pool.Begin(t.Context())
			must(t, err)
			defer turn.Rollback(context.WithoutCancel(t.Context())) // for failures
			must(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `SELECT cancel_run($1, $2)`, account, run); err != nil {
					return err
				}
				if _, err := d.Sweep(t.Context()); err != nil { // queues the jobs
					return err
				}
				if waitsForTurn {
					if _, err := turn.Exec(t.Context(), `SELECT FROM job_turns FOR UPDATE`); err != nil {
						return err
					}
				}
				go func() { claimed <- claim(t, d, 3) }() // all jobs of a model, and a part of the other's
				storetest.UntilWaiting(t, s.pool, "transactionid")
				return nil
			}))
			must(t, turn.Rollback(t.Context()))
			if got := <-claimed; len(got) > 0 {
				t.Errorf("%d jobs of a canceled run are handed out", len(got))
			}
			s.wantCanceled(t, d, run, 0)
		})
	}
}

// TestCancelWaitsForClaim: a run is canceled after a claim that is taking jobs of it, so that these keep their
// attempts.
func TestCancelWaitsForClaim(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	s := newSite(t)
	d := s.dispatcher(t)
	account := s.account(t)
	run := s.createRun(t, account, []string{"m1"}, 5, 1)
	claim(t, d, 1)
	release := s.holdLease(t, account, run, 2)
	claimed := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 2, Lease: time.Minute})
	claiming := storetest.UntilWaiting(t, s.pool, "transactionid")
	canceled := make(chan struct{})
	go func() {
		defer close(canceled)
		s.cancel(t, run)
	}()
	s.untilBlockedBy(t, "the cancellation", claiming)
	release()
	if a := <-claimed; a.err != nil || len(a.jobs) != 2 {
		t.Errorf("%d jobs, %v; want 2", len(a.jobs), a.err)
	}
	<-canceled
	s.wantCanceled(t, d, run, 3)
}

// wantCanceled checks that no more jobs of a canceled run are claimed, and that as many keep their first attempt.
func (s *site) wantCanceled(t *testing.T, d *jobs.Dispatcher, run store.ID, attempts int) {
	t.Helper()
	if got := claim(t, d, 2); len(got) > 0 { // admits the cancellation
		t.Errorf("%d jobs of a canceled run are handed out later", len(got))
	}
	if n := s.count(t, `SELECT count(*) FROM job_results WHERE canceled AND attempts = 1 AND run_id = $1`, run); n != attempts {
		t.Errorf("%d canceled results, want %d", n, attempts)
	}
	s.check(t)
}

// holdLease makes writers of the lease that begins with a job wait until the function that it returns is called.
func (s *site) holdLease(t *testing.T, account, run store.ID, ordinal int32) (release func()) {
	t.Helper()
	tx := begin(t, s.pool, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
VALUES ($1, $2, $3, $3, 'p1', $4, 'held', 1, 0, $4, $4, $2)`, account, run, ordinal, time.Now())
	return func() { must(t, tx.Rollback(t.Context())) }
}

// TestCompletedBeforeCancel: to an attempt that lost its lease, a job that another attempt has completed before its run
// was canceled is lost or stale, and the run's other job is canceled.
func TestCompletedBeforeCancel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	first := claim(t, d, 2)
	s.pass(t, 2*time.Minute)
	sweep(t, d)
	settle(t, d, jobs.Completed, claim(t, d, 2)[0])
	s.cancel(t, run)
	renewed, err := d.Renew(t.Context(), jobs.Reporter{}, time.Minute, []jobs.Renewal{{Key: first[0].Key, Attempt: 1}, {Key: first[1].Key, Attempt: 1}})
	must(t, err)
	got := append(settle(t, d, jobs.Completed, first...), renewed[0].State, renewed[1].State)
	if diff := cmp.Diff([]string{"stale", "canceled", "lost", "canceled"}, got); diff != "" {
		t.Errorf("settled and renewed (-want +got):\n%s", diff)
	}
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
	s.check(t)
}

package runs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestCancelTime: a run that was started while its cancellation waited was not canceled before.
func TestCancelTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := runs.New(runs.Config{Pool: s.open(t, ""), Checks: checker(always), NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 10})
	made := create(t, r, s.request("1", 1, 1, 1))
	tx := begin(t, s.pool, `UPDATE measurement_runs SET jobs_returned = 0 WHERE account_id = $1 AND id = $2`, s.credential.AccountID, made.RunID)
	canceled := make(chan *runs.Run, 1)
	go func() {
		run, err := r.Cancel(t.Context(), s.credential.AccountID, made.RunID)
		if err != nil {
			t.Error(err)
		}
		canceled <- run
	}()
	storetest.UntilWaiting(t, s.pool, "transactionid")
	var now time.Time
	must(t, tx.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now))
	must(t, ignore(tx.Exec(t.Context(), `UPDATE measurement_runs SET status = 'running', started_at = $3 WHERE account_id = $1 AND id = $2`,
		s.credential.AccountID, made.RunID, now)))
	must(t, tx.Commit(t.Context()))
	if run := <-canceled; run == nil || run.FinishedAt.Before(*run.StartedAt) {
		t.Errorf("started at %v, canceled at %v", run.StartedAt, run.FinishedAt)
	}
}

func TestCancelEndsARun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var finished []store.ID
	r := runs.New(runs.Config{
		Pool: s.open(t, ""), Checks: checker(always), NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 10,
		Finished: func(_ context.Context, _ store.Tx, f []runs.Run) error {
			for _, run := range f {
				finished = append(finished, run.ID)
			}
			return nil
		},
	})
	account := s.credential.AccountID
	queued, running, done := create(t, r, s.request("1", 1, 2, 3)), create(t, r, s.request("2", 1, 2, 3)), create(t, r, s.request("3", 1, 1, 1))
	s.exec(t, `UPDATE measurement_runs SET status = 'running', started_at = now(), jobs_returned = 2, jobs_completed = 1, jobs_failed = 1
		WHERE id = $1`, running.RunID)
	s.exec(t, `UPDATE measurement_runs SET status = 'completed', started_at = now(), finished_at = now(), jobs_completed = 1
		WHERE id = $1`, done.RunID)
	s.exec(t, `UPDATE account_months SET jobs_completed = 1`)

	type counters struct{ Running, Completed, Failed, Canceled int }
	for _, test := range []struct {
		name   string
		run    store.ID
		status string
		want   counters
		err    error
	}{
		{"a queued run", queued.RunID, "canceled", counters{0, 0, 0, 6}, nil},
		{"a running run", running.RunID, "canceled", counters{0, 1, 1, 4}, nil},
		{"a canceled run", running.RunID, "canceled", counters{0, 1, 1, 4}, nil},
		{"a completed run", done.RunID, "completed", counters{0, 1, 0, 0}, runs.ErrFinal},
		{"no run", store.NewID(), "", counters{}, runs.ErrNotFound},
	} {
		run, err := r.Cancel(t.Context(), account, test.run)
		if !errors.Is(err, test.err) || run == nil && test.status != "" {
			t.Errorf("%s: got %v, %v, want %v", test.name, run, err, test.err)
			continue
		}
		if run == nil {
			continue
		}
		got := counters{run.Running, run.Completed, run.Failed, run.Canceled}
		if diff := cmp.Diff(test.want, got); diff != "" || run.Status != test.status || run.FinishedAt == nil {
			t.Errorf("%s: %s (-want +got):\n%s", test.name, run.Status, diff)
		}
	}
	if _, err := r.Cancel(t.Context(), s.customer(t).AccountID, queued.RunID); !errors.Is(err, runs.ErrNotFound) {
		t.Errorf("another account's run: got %v", err)
	}
	equal(t, []store.ID{queued.RunID, running.RunID}, finished, "runs reported as finished")
	var m counters
	must(t, s.pool.QueryRow(t.Context(), `SELECT jobs_completed, jobs_failed, jobs_canceled FROM account_months`).Scan(&m.Completed, &m.Failed, &m.Canceled))
	equal(t, counters{0, 2, 1, 10}, m, "the month's totals")
}

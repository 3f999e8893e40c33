package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestCancelTime: a run that was started while its cancellation waited was not canceled before.
func TestCancelTime(t *testing.T) {
	s, r := newProcess(t)
	made := create(t, r, s.request("1", 1, 1, 1))
	tx := begin(t, s.pool, `UPDATE measurement_runs SET jobs_returned = 0 WHERE id = $1`, made.RunID)
	var run *runs.Run
	done := make(chan error, 1)
	go func() {
		var err error
		run, err = r.Cancel(t.Context(), s.credential.AccountID, made.RunID)
		done <- err
	}()
	storetest.UntilWaiting(t, s.pool, "transactionid")
	var now time.Time
	must(t, tx.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now))
	must(t, ignore(tx.Exec(t.Context(), `UPDATE measurement_runs SET status = 'running', started_at = $2 WHERE id = $1`,
		made.RunID, now)))
	must(t, tx.Commit(t.Context()))
	must(t, <-done)
	if run.FinishedAt.Before(*run.StartedAt) {
		t.Errorf("started at %v, canceled at %v", run.StartedAt, run.FinishedAt)
	}
}

func TestCancelEndsARun(t *testing.T) {
	s := newSite(t)
	var finished []store.ID
	r := newRuns(runs.Config{Pool: s.open(t, ""), Finished: func(_ context.Context, _ store.Tx, f []runs.Run) error {
		for _, run := range f {
			finished = append(finished, run.ID)
		}
		return nil
	}})
	account := s.credential.AccountID
	queued, running := create(t, r, s.request("1", 1, 2, 3)).RunID, create(t, r, s.request("2", 1, 2, 3)).RunID
	done := create(t, r, s.request("3", 1, 1, 1)).RunID
	s.exec(t, `UPDATE measurement_runs SET status = 'running', started_at = now(), jobs_returned = 2, jobs_completed = 1, jobs_failed = 1
		WHERE id = $1`, running)
	s.exec(t, `UPDATE measurement_runs SET status = 'completed', started_at = now(), finished_at = now(), jobs_completed = 1
		WHERE id = $1`, done)
	s.exec(t, `UPDATE account_months SET jobs_completed = 1`)
	for _, test := range []struct {
		name         string
		account, run store.ID
		want         string // status, then jobs that run, were completed, failed and were canceled
		err          error
	}{
		{"a queued run", account, queued, "canceled 0 0 0 6", nil},
		{"a running run", account, running, "canceled 0 1 1 4", nil},
		{"a canceled run", account, running, "canceled 0 1 1 4", nil},
		{"a completed run", account, done, "completed 0 1 0 0", runs.ErrFinal},
		{"no run", account, store.NewID(), "", runs.ErrNotFound},
		{"another account's run", s.customer(t).AccountID, queued, "", runs.ErrNotFound},
	} {
		run, err := r.Cancel(t.Context(), test.account, test.run)
		got := ""
		if run != nil && run.FinishedAt != nil {
			got = fmt.Sprint(run.Status, " ", run.Running, run.Completed, run.Failed, run.Canceled)
		}
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: got %q, %v, want %q, %v", test.name, got, err, test.want, test.err)
		}
	}
	equal(t, []store.ID{queued, running}, finished, "runs reported as finished")
	month, err := r.MonthOf(t.Context(), account, nil)
	must(t, err)
	want := runs.MonthlyUsage{AccountID: account, Month: month.Month, Runs: 3, Jobs: 13, Completed: 2, Failed: 1, Canceled: 10}
	equal(t, want, month, "the month")
}

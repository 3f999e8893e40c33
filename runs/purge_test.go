package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights"
	"aiv/runs"
	"aiv/store"
	"aiv/store/schema"
)

const day = 24 * time.Hour

// past writes n runs with all that belongs to them, of 2 models, 1 question and 2 repetitions, which were created, and
// are final since, an age ago. Otherwise they are queued.
func (s *site) past(t *testing.T, n int, age time.Duration, final bool) {
	t.Helper()
	r := newRuns(runs.Config{Pool: s.pool})
	createAtOnce(t, r, n, func(i int) *runs.CreateRequest { return s.request(fmt.Sprint(age, " ", i), 2, 1, 2) })
	if final {
		s.exec(t, `UPDATE measurement_runs SET status = 'partial', jobs_completed = 3, jobs_failed = 1,
			started_at = $1, finished_at = $1 WHERE created_at > now() - interval '10 min'`, time.Now().Add(-age))
	}
	s.exec(t, `INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, run_id, detected_at)
		SELECT account_id, id, 'run_failed', 'low', 'open', 'a', 'a', 'none', id, created_at FROM measurement_runs
		WHERE created_at > now() - interval '10 min'`)
	s.backdate(t, time.Now().Add(-age))
}

// backdate moves the creation of the runs of the last ten minutes to another time.
func (s *site) backdate(t *testing.T, to time.Time) {
	t.Helper()
	for _, table := range []string{"measurement_runs", "measurement_run_models", "usage_records", "idempotency_records"} {
		s.exec(t, `UPDATE `+table+` SET created_at = $1 WHERE created_at > now() - interval '10 min'`, to)
	}
	s.exec(t, `DELETE FROM account_months`)
	s.exec(t, `INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed)
		SELECT account_id, date_trunc('month', created_at, 'UTC'), count(*), sum(total_jobs), sum(jobs_completed),
			sum(jobs_failed) FROM measurement_runs GROUP BY 1, 2`)
}

func (s *site) purger() *runs.Purger {
	return &runs.Purger{Pool: s.pool, Actor: "test", Tables: insights.Capability.Tables}
}

// rowCounts counts the rows of an account.
type rowCounts struct{ Runs, Jobs, Models, Usage, Keys, Alerts, AlertsOfRuns, RunsCharged, JobsCharged int }

func (s *site) left(t *testing.T, account store.ID) rowCounts {
	t.Helper()
	n, err := store.CollectOne(t.Context(), s.pool, pgx.RowToStructByPos[rowCounts], `
SELECT (SELECT count(*) FROM measurement_runs WHERE account_id = $1), (SELECT count(*) FROM measurement_jobs WHERE account_id = $1),
  (SELECT count(*) FROM measurement_run_models WHERE account_id = $1), (SELECT count(*) FROM usage_records WHERE account_id = $1),
  (SELECT count(*) FROM idempotency_records WHERE account_id = $1),
  (SELECT count(*) FROM alerts WHERE account_id = $1), (SELECT count(run_id) FROM alerts WHERE account_id = $1),
  (SELECT sum(runs) FROM account_months WHERE account_id = $1),
  (SELECT sum(jobs_ordered) FROM account_months WHERE account_id = $1)`, account)
	must(t, err)
	return n
}

// TestPurgeDeletesOldFinalRuns deletes final runs of all accounts that finished before a time and can't be replayed,
// and nothing else.
func TestPurgeDeletesOldFinalRuns(t *testing.T) {
	s := newSite(t)
	first := s.credential.AccountID
	s.past(t, 250, 90*day, true)
	s.past(t, 2, 91*day, false) // open
	s.past(t, 3, 10*day, true)  // too recent
	s.credential = s.customer(t)
	s.past(t, 1, 90*day, true)
	s.past(t, 1, 2*time.Hour, true)

	var steps []int64
	p := s.purger()
	p.Progress = func(total runs.Purged) { steps = append(steps, total.Runs) }
	purged, err := p.FinishedBefore(t.Context(), time.Now().Add(-30*day), day)
	must(t, err)
	if want := (runs.Purged{Runs: 251, Jobs: 1004}); purged != want || len(steps) < 4 {
		t.Errorf("got %+v in the steps %v, want %+v in at least 4 steps", purged, steps, want)
	}
	s.verify(t)
	equal(t, rowCounts{5, 20, 10, 5, 5, 255, 5, 255, 1020}, s.left(t, first), "rows of the first account")
	// Whatever the time is, runs whose key may be replayed stay.
	purged, err = p.FinishedBefore(t.Context(), time.Now(), day)
	must(t, err)
	equal(t, runs.Purged{Runs: 3, Jobs: 12}, purged)
	s.verify(t)
	equal(t, rowCounts{1, 4, 2, 1, 1, 2, 1, 2, 8}, s.left(t, s.credential.AccountID), "rows of the second account")
}

// TestPurgeInterrupted ends a purge between two steps and in the middle of a step. What is left is consistent, and the
// next purge deletes it, as soon as another session has unlocked it.
func TestPurgeInterrupted(t *testing.T) {
	s := newSite(t)
	s.past(t, 130, 90*day, true)
	before := time.Now().Add(-30 * day)

	ctx, cancel := context.WithCancel(t.Context())
	p := s.purger()
	p.Progress = func(runs.Purged) { cancel() }
	if purged, err := p.FinishedBefore(ctx, before, day); !errors.Is(err, context.Canceled) || purged.Runs != 100 {
		t.Fatalf("between steps: got %+v, %v", purged, err)
	}
	s.verify(t)

	p = s.purger()
	broken := errors.New("broken")
	p.Tables = append(slices.Clone(p.Tables), schema.Table{Purge: schema.Purge{
		Delete: func(context.Context, pgx.Tx, string, store.ID, []store.ID) error { return broken }}})
	if purged, err := p.FinishedBefore(t.Context(), before, day); !errors.Is(err, broken) || purged.Runs != 0 {
		t.Fatalf("in a step: got %+v, %v", purged, err)
	}
	s.verify(t)
	equal(t, rowCounts{30, 120, 60, 30, 30, 130, 30, 130, 520}, s.left(t, s.credential.AccountID), "rows after interruptions")

	locked := begin(t, s.pool, `SELECT FROM measurement_runs WHERE account_id = $1 FOR KEY SHARE`, s.credential.AccountID)
	must(t, s.whileWaiting(t, locked, func() error {
		purged, err := s.purger().FinishedBefore(t.Context(), before, day)
		equal(t, int64(30), purged.Runs, "runs of the next purge")
		return err
	}, func() {}))
	equal(t, 0, s.left(t, s.credential.AccountID).Runs, "left")
	s.verify(t)
}

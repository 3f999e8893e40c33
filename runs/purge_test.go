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
	"aiv/store/storetest"
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

// purge deletes runs that finished before a time, with rows in the tables of insights and in more.
func (s *site) purge(ctx context.Context, before time.Time, progress func(runs.Purged), more ...schema.Table) (runs.Purged, error) {
	p := &runs.Purger{Pool: s.pool, Actor: "test", Tables: slices.Concat(insights.Capability.Tables, more), Progress: progress}
	return p.FinishedBefore(ctx, before, day)
}

// left verifies the database and returns what an account has: runs, jobs, models, usage records, keys, and alerts, some
// of them about runs; and the runs and jobs that it was charged for.
func (s *site) left(t *testing.T, account store.ID) string {
	t.Helper()
	s.verify(t)
	return storetest.Value[string](t, s.pool, `
SELECT format('%s %s %s %s %s, %s alerts, %s of runs; charged %s %s', (SELECT count(*) FROM measurement_runs WHERE account_id = $1),
  (SELECT count(*) FROM measurement_jobs WHERE account_id = $1), (SELECT count(*) FROM measurement_run_models WHERE account_id = $1),
  (SELECT count(*) FROM usage_records WHERE account_id = $1), (SELECT count(*) FROM idempotency_records WHERE account_id = $1),
  (SELECT count(*) FROM alerts WHERE account_id = $1), (SELECT count(run_id) FROM alerts WHERE account_id = $1),
  (SELECT sum(runs) FROM account_months WHERE account_id = $1),
  (SELECT sum(jobs_ordered) FROM account_months WHERE account_id = $1))`, account)
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

	steps := 0
	purged, err := s.purge(t.Context(), time.Now().Add(-30*day), func(runs.Purged) { steps++ })
	if want := (runs.Purged{Runs: 251, Jobs: 1004}); err != nil || purged != want || steps < 4 {
		t.Errorf("got %+v in %d steps, %v, want %+v in at least 4 steps", purged, steps, err, want)
	}
	equal(t, "5 20 10 5 5, 255 alerts, 5 of runs; charged 255 1020", s.left(t, first))
	// Whatever the time is, runs whose key may be replayed stay.
	purged, err = s.purge(t.Context(), time.Now(), nil)
	must(t, err)
	equal(t, runs.Purged{Runs: 3, Jobs: 12}, purged)
	equal(t, "1 4 2 1 1, 2 alerts, 1 of runs; charged 2 8", s.left(t, s.credential.AccountID))
}

// TestPurgeInterrupted ends a purge between two steps and in the middle of a step. What is left is consistent, and the
// next purge deletes it.
func TestPurgeInterrupted(t *testing.T) {
	s := newSite(t)
	account := s.credential.AccountID
	s.past(t, 130, 90*day, true)
	before := time.Now().Add(-30 * day)

	ctx, cancel := context.WithCancel(t.Context())
	if purged, err := s.purge(ctx, before, func(runs.Purged) { cancel() }); !errors.Is(err, context.Canceled) || purged.Runs != 100 {
		t.Fatalf("between steps: got %+v, %v", purged, err)
	}
	s.verify(t)
	broken := errors.New("broken")
	fails := func(context.Context, pgx.Tx, string, store.ID, []store.ID) error { return broken }
	purged, err := s.purge(t.Context(), before, nil, schema.Table{Purge: schema.Purge{Delete: fails}})
	if !errors.Is(err, broken) || purged.Runs != 0 {
		t.Fatalf("in a step: got %+v, %v", purged, err)
	}
	equal(t, "30 120 60 30 30, 130 alerts, 30 of runs; charged 130 520", s.left(t, account))

	must(t, ignore(s.purge(t.Context(), before, nil)))
	equal(t, "0 0 0 0 0, 130 alerts, 0 of runs; charged 130 520", s.left(t, account))
}

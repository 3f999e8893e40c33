package runs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/idempotency"
	"aiv/insights"
	"aiv/runs"
	"aiv/store"
	"aiv/store/schema"
)

// pastRuns writes n runs of an account with all that belongs to them: of 2 models, 1 question and 2 repetitions,
// created $3 and finished a second later. Status queued leaves them open.
const pastRuns = `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
    repetitions, locale, country, language, total_jobs, jobs_completed, jobs_failed, created_at, started_at, finished_at)
  SELECT $1, gen_random_uuid(), $2, CASE WHEN $5::boolean THEN 'partial' ELSE 'queued' END, 'grounded', 'AIVM-1.0', '{a,b}', '{q}', 2, 'it-IT', 'IT', 'it', 4,
    CASE WHEN $5 THEN 3 ELSE 0 END, CASE WHEN $5 THEN 1 ELSE 0 END, $3::timestamptz + i * interval '1 us',
    CASE WHEN $5 THEN $3::timestamptz END, CASE WHEN $5 THEN $3::timestamptz + interval '1 s' END
  FROM generate_series(1, $4) i RETURNING *
), model AS (
  INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id) SELECT account_id, unnest(model_ids), created_at, id FROM run
), job AS (
  INSERT INTO measurement_jobs (account_id, run_id, ordinal) SELECT account_id, id, generate_series(1, total_jobs) FROM run
), usage AS (
  INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version, created_at FROM run
), key AS (
  INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
  SELECT account_id, 'POST', '/v1/runs', id::text, sha256(''), id, '', created_at FROM run
), alert AS (
  INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, run_id, detected_at)
  SELECT account_id, id, 'run_failed', 'low', 'open', 'a', 'a', 'none', id, created_at FROM run
)
INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed)
SELECT account_id, date_trunc('month', created_at, 'UTC'), count(*), sum(total_jobs), sum(jobs_completed), sum(jobs_failed) FROM run GROUP BY 1, 2
ON CONFLICT (account_id, month) DO UPDATE SET runs = m.runs + excluded.runs, jobs_ordered = m.jobs_ordered + excluded.jobs_ordered,
  jobs_completed = m.jobs_completed + excluded.jobs_completed, jobs_failed = m.jobs_failed + excluded.jobs_failed`

func (s *site) past(t *testing.T, n int, age time.Duration, final bool) {
	t.Helper()
	s.exec(t, pastRuns, s.credential.AccountID, s.credential.ID, time.Now().Add(-age), n, final)
}

func (s *site) purger() *runs.Purger {
	return &runs.Purger{Pool: s.pool, Actor: "test", Tables: insights.Capability.Tables}
}

// verify reports broken invariants.
func (s *site) verify(t *testing.T) {
	t.Helper()
	violations, err := store.Verify(t.Context(), s.pool, slices.Concat(runs.Invariants(), idempotency.Invariants()))
	must(t, err)
	for _, v := range violations {
		t.Errorf("%s: %d rows: %v", v.Invariant.Name, v.Count, v.Rows)
	}
}

// left counts the rows of an account, and of its alerts those that refer to a run.
func (s *site) left(t *testing.T, account store.ID) (n rowCounts) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM measurement_runs WHERE account_id = $1), (SELECT count(*) FROM measurement_jobs WHERE account_id = $1),
  (SELECT count(*) FROM measurement_run_models WHERE account_id = $1), (SELECT count(*) FROM usage_records WHERE account_id = $1),
  (SELECT count(*) FROM idempotency_records WHERE account_id = $1),
  (SELECT count(*) FROM alerts WHERE account_id = $1), (SELECT count(run_id) FROM alerts WHERE account_id = $1),
  (SELECT sum(runs) FROM account_months WHERE account_id = $1), (SELECT sum(jobs_ordered) FROM account_months WHERE account_id = $1)`,
		account).Scan(&n.Runs, &n.Jobs, &n.Models, &n.Usage, &n.Keys, &n.Alerts, &n.AlertsOfRuns, &n.RunsCharged, &n.JobsCharged))
	return n
}

type rowCounts struct{ Runs, Jobs, Models, Usage, Keys, Alerts, AlertsOfRuns, RunsCharged, JobsCharged int }

const day = 24 * time.Hour

// TestPurgeDeletesOldFinalRuns deletes final runs of all accounts that finished before a time and can't be replayed, and nothing else.
func TestPurgeDeletesOldFinalRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.credential.AccountID
	s.past(t, 250, 90*day, true)
	s.past(t, 2, 90*day, false) // open
	s.past(t, 3, 10*day, true)  // too recent
	s.credential = s.customer(t)
	s.past(t, 1, 90*day, true)
	s.past(t, 1, 2*time.Hour, true)
	s.verify(t)

	var steps []int64
	p := s.purger()
	p.Progress = func(total runs.Purged) { steps = append(steps, total.Runs) }
	purged, err := p.FinishedBefore(t.Context(), time.Now().Add(-30*day), day)
	must(t, err)
	if want := (runs.Purged{Runs: 251, Jobs: 1004}); purged != want || len(steps) < 4 {
		t.Errorf("got %+v in the steps %v, want %+v in at least 4 steps", purged, steps, want)
	}
	s.verify(t)
	want := rowCounts{5, 20, 10, 5, 5, 255, 5, 255, 1020}
	equal(t, want, s.left(t, first), "rows of the first account")
	// Whatever the time is, runs whose key may be replayed stay.
	purged, err = p.FinishedBefore(t.Context(), time.Now(), day)
	must(t, err)
	equal(t, runs.Purged{Runs: 3, Jobs: 12}, purged)
	s.verify(t)
	equal(t, rowCounts{1, 4, 2, 1, 1, 2, 1, 2, 8}, s.left(t, s.credential.AccountID), "rows of the second account")
}

// TestPurgeOfLargeRuns: a step deletes up to 20,000 jobs, or one run with more.
func TestPurgeOfLargeRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.past(t, 5, 90*day, true)
	s.exec(t, `
UPDATE measurement_runs r SET repetitions = k.jobs / 2, total_jobs = k.jobs, jobs_completed = k.jobs - 1
FROM (SELECT id, (ARRAY[10000, 10000, 2, 30000, 20000])[row_number() OVER (ORDER BY created_at)] AS jobs
  FROM measurement_runs WHERE account_id = $1) k
WHERE r.account_id = $1 AND r.id = k.id`, s.credential.AccountID)
	var steps []runs.Purged
	p := s.purger()
	p.Progress = func(total runs.Purged) { steps = append(steps, total) }
	must(t, ignore(p.FinishedBefore(t.Context(), time.Now().Add(-30*day), day)))
	equal(t, []runs.Purged{{Runs: 2, Jobs: 20_000}, {Runs: 3, Jobs: 20_002}, {Runs: 4, Jobs: 50_002}, {Runs: 5, Jobs: 70_002}}, steps, "totals after each step")
}

// TestPurgeInterrupted ends a purge between two steps and in the middle of a step. What is left is consistent, and the
// next purge deletes it.
func TestPurgeInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.past(t, 130, 90*day, true)
	before := time.Now().Add(-30 * day)

	ctx, cancel := context.WithCancel(t.Context())
	p := s.purger()
	p.Progress = func(runs.Purged) { cancel() }
	purged, err := p.FinishedBefore(ctx, before, day)
	if !errors.Is(err, context.Canceled) || purged.Runs != 100 {
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
	if n := s.left(t, s.credential.AccountID); n.Runs != 30 || n.AlertsOfRuns != 30 {
		t.Errorf("after interruptions: %+v", n)
	}

	purged, err = s.purger().FinishedBefore(t.Context(), before, day)
	must(t, err)
	equal(t, 30, purged.Runs, "runs of the next purge")
	s.verify(t)
}

// TestPurgeLocked: a step waits for a lock for a moment at a time and deletes its runs once the lock is released.
func TestPurgeLocked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.past(t, 3, 90*day, true)
	tx := begin(t, s.pool, `SELECT FROM measurement_runs WHERE account_id = $1 FOR KEY SHARE`, s.credential.AccountID)
	done := make(chan error, 1)
	go func() {
		_, err := s.purger().FinishedBefore(t.Context(), time.Now().Add(-30*day), day)
		done <- err
	}()
	s.waiting(t, "transactionid")
	must(t, tx.Rollback(t.Context()))
	must(t, <-done)
	equal(t, 0, s.left(t, s.credential.AccountID).Runs, "left")
	s.verify(t)
}

// TestEraseRuns deletes all runs of one account, open and recent ones too, and none of another.
func TestEraseRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	erased := s.credential.AccountID
	s.past(t, 60, time.Hour, true)
	s.past(t, 50, time.Minute, false)
	s.credential = s.customer(t)
	s.past(t, 2, 90*day, true)
	s.past(t, 2, time.Hour, false)
	other := s.left(t, s.credential.AccountID)

	purged, err := s.purger().Account(t.Context(), erased)
	must(t, err)
	equal(t, runs.Purged{Runs: 110, Jobs: 440}, purged)
	s.verify(t)
	equal(t, rowCounts{Alerts: 110, RunsCharged: 110, JobsCharged: 440}, s.left(t, erased), "rows of the account")
	equal(t, other, s.left(t, s.credential.AccountID), "rows of the other account")
}

package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// Months are those of UTC, and both ends are added up.
func TestUsageByMonth(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.newAccount(t)
	s.prints(t, "accounts create -name B -plan p", "Account {acct2} was created: \"B\" on plan p.\n")
	pool := connect(t, s.url())
	a, b := s.values("{acct1}"), s.values("{acct2}")
	writeRun(t, pool, b, "2026-09-30T23:59:59.999999Z", 1)
	writeRun(t, pool, b, "2026-10-01T00:00:00Z", 2)
	writeRun(t, pool, b, "2026-10-31T23:59:59.999999Z", 3)
	writeRun(t, pool, a, "2026-10-15T00:00:00Z", 4)
	writeRun(t, pool, a, "2026-11-01T01:00:00+02:00", 5)
	writeRun(t, pool, a, "2026-12-31T23:00:00-01:00", 6)
	storetest.Exec(t, pool, `
UPDATE measurement_runs SET status = 'running', started_at = created_at, jobs_completed = 2, jobs_failed = 1 WHERE total_jobs = 4;
UPDATE measurement_runs SET status = 'completed', started_at = created_at, finished_at = created_at, jobs_completed = 5 WHERE total_jobs = 5;
UPDATE account_months SET jobs_completed = 5 WHERE account_id = (SELECT account_id FROM measurement_runs WHERE total_jobs = 5) AND jobs_ordered = 9`)
	s.follow(t, "testdata/stories/usage.txt")
}

// writeRun writes a run of the account with its usage, as if it had been created then.
func writeRun(t *testing.T, pool *pgxpool.Pool, account, at string, jobs int) {
	t.Helper()
	id, err := store.ParseID("acct", account)
	must(t, err)
	created, err := time.Parse(time.RFC3339, at)
	must(t, err)
	_, err = pool.Exec(t.Context(), `
WITH credential AS (
  INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) VALUES ($2, $1, 'c', 'aiv_live_00000000', sha256(uuid_send($2)), '{}')
), month AS (
  INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered) VALUES ($1, date_trunc('month', $5::timestamptz, 'UTC'), 1, $4::integer)
  ON CONFLICT (account_id, month) DO UPDATE SET runs = m.runs + 1, jobs_ordered = m.jobs_ordered + excluded.jobs_ordered
), run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, created_at)
  VALUES ($1, $3, $2, 'grounded', 'AIVM-1.0', '{m}', '{q}', $4::integer, 'it-IT', 'IT', 'it', $4::integer, $5)
)
INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
VALUES ($1, $3, $2, $4::integer, 'grounded', 'AIVM-1.0', $5)`, id, store.NewID(), store.NewID(), jobs, created)
	must(t, err)
}

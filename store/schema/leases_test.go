package schema_test

import (
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// insertRuns inserts runs of an account: each is a number, a status, the models and the repetitions of its two
// questions.
func insertRuns(t *testing.T, pool *pgxpool.Pool, runs ...string) {
	t.Helper()
	storetest.Exec(t, pool, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids,
    question_ids, repetitions, locale, country, language, total_jobs, started_at, finished_at)
  SELECT `+ourAccount+`, ('00000000-0000-7000-8000-00000000000' || n)::uuid, gen_random_uuid(), status, 'grounded',
    'AIVM-1.0', models::text[], '{q,r}', repetitions, 'it-IT', 'IT', 'it', cardinality(models::text[]) * 2 * repetitions, now(),
    CASE status WHEN 'canceled' THEN now() END
  FROM (VALUES (`+strings.Join(runs, "), (")+`)) AS runs (n, status, models, repetitions)`)
}

// insertLeases inserts leases one after the other: each is a run, the first and the last ordinal, provider, state,
// attempt and tries.
func insertLeases(t *testing.T, pool *pgxpool.Pool, leases ...string) {
	t.Helper()
	for _, lease := range leases {
		storetest.Exec(t, pool, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, state, attempt, tries,
  run_created_at, until, started_at, worker_id)
SELECT `+ourAccount+`, ('00000000-0000-7000-8000-00000000000' || run)::uuid, ordinal, last, provider, state, attempt,
  tries, '2026-11-01T00:00Z', '2026-11-02T00:00Z', '2026-11-03T00:00Z', '00000000-0000-7000-8000-000000000009'
FROM (VALUES (`+lease+`)) AS l (run, ordinal, last, provider, state, attempt, tries)`)
	}
}

// TestSplitLeases: migration 0010 splits the leases of several models, and waits for transactions that have read
// leases.
func TestSplitLeases(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	storetest.Exec(t, pool, `DELETE FROM schema_migrations WHERE version = 10`)
	insertRuns(t, pool, `1, 'running', '{a,b,c}', 2`, `2, 'running', '{a}', 2`, `3, 'running', '{a,b,c}', 2`)
	insertLeases(t, pool,
		`1, 1, 12, 'p', 'held', 1, 0`,
		`2, 1, 4, 'p', 'held', 2, 1`,
		`3, 1, 2, 'p', 'held', 1, 0`, `3, 3, 5, 'q', 'waiting', 3, 2`,
		`3, 6, 8, 'q', 'ready', 1, 0`, `3, 9, 12, 'q', 'ready', 1, 0`)

	reading, err := pool.Begin(t.Context())
	must(t, err)
	defer reading.Rollback(t.Context())
	_, err = reading.Exec(t.Context(), `SELECT FROM job_leases WHERE account_id = `+ourAccount)
	must(t, err)
	if _, err := (schema.Config{}).Locking(50*time.Millisecond, 1).Migrate(t.Context(), pool); !store.IsLockTimeout(err) {
		t.Errorf("while a transaction has read leases: got error %v, want that of a lock timeout", err)
	}
	must(t, reading.Rollback(t.Context()))
	applied, err := schema.Migrate(t.Context(), pool)
	must(t, err)
	equal(t, "0010_split_leases", names(applied), "applied")
	want := []string{
		"1, 1, 4, p, held, 1, 0", "1, 5, 8, p, held, 1, 0", "1, 9, 12, p, held, 1, 0",
		"2, 1, 4, p, held, 2, 1",
		"3, 1, 2, p, held, 1, 0", "3, 3, 4, q, waiting, 3, 2", "3, 5, 5, q, waiting, 3, 2",
		"3, 6, 8, q, ready, 1, 0", "3, 9, 12, q, ready, 1, 0",
	}
	equal(t, want, column[string](t, pool, `
SELECT concat_ws(', ', right(run_id::text, 1), ordinal, last_ordinal, provider_code, state, attempt, tries)
FROM job_leases WHERE (run_created_at, until, started_at, worker_id) =
  ('2026-11-01T00:00Z', '2026-11-02T00:00Z', '2026-11-03T00:00Z', '00000000-0000-7000-8000-000000000009')
ORDER BY run_id, ordinal`), "leases")
}

// TestReturnedJobs: migration 0011 counts the returned jobs of running runs, instead of those that workers have.
func TestReturnedJobs(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	storetest.Exec(t, pool, `DELETE FROM schema_migrations WHERE version = 11`)
	insertRuns(t, pool, `1, 'running', '{a}', 5`, `2, 'running', '{a}', 5`, `3, 'canceled', '{a}', 5`)
	insertLeases(t, pool,
		`1, 1, 3, 'p', 'held', 1, 0`, `1, 4, 5, 'p', 'waiting', 1, 0`, `1, 7, 7, 'p', 'ready', 1, 0`,
		`2, 1, 2, 'p', 'held', 1, 0`,
		`3, 1, 1, 'p', 'waiting', 1, 0`)
	storetest.Exec(t, pool, // the jobs that workers have
		`UPDATE measurement_runs SET jobs_returned = CASE right(id::text, 1) WHEN '1' THEN 3 WHEN '2' THEN 2 ELSE 0 END`,
		`ALTER TABLE measurement_runs RENAME COLUMN jobs_returned TO jobs_running`,
		`ALTER TABLE measurement_runs
			RENAME CONSTRAINT measurement_runs_jobs_returned_check TO measurement_runs_jobs_running_check`)
	applied, err := schema.Migrate(t.Context(), pool)
	must(t, err)
	equal(t, "0011_returned_jobs", names(applied), "applied")
	returned := column[int](t, pool, `SELECT jobs_returned FROM measurement_runs ORDER BY id`)
	equal(t, []int{3, 0, 0}, returned, "returned jobs of the runs")
}

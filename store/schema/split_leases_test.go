package schema_test

import (
	"fmt"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// TestSplitLeases: migration 0010 splits the leases of several models, and waits for transactions that have read
// leases.
func TestSplitLeases(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	storetest.Exec(t, pool, `DELETE FROM schema_migrations WHERE version = 10`)
	const account = `00000000-0000-7000-8000-000000000001`
	// Runs 1 and 3 have 3 models of 4 jobs each, run 2 has one model.
	storetest.Exec(t, pool, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, started_at)
  SELECT '`+account+`', ('00000000-0000-7000-8000-00000000000' || n)::uuid, gen_random_uuid(), 'running', 'grounded', 'AIVM-1.0', models, '{q,r}', 2,
    'it-IT', 'IT', 'it', 4 * cardinality(models), now()
  FROM (VALUES (1, '{a,b,c}'::text[]), (2, '{a}'), (3, '{a,b,c}')) AS runs (n, models)`)
	for _, lease := range []string{
		`1, 1, 12, 'p', 'held', 1, 0`,
		`2, 1, 4, 'p', 'held', 2, 1`,
		`3, 1, 2, 'p', 'held', 1, 0`,
		`3, 3, 5, 'q', 'waiting', 3, 2`,
		`3, 6, 8, 'q', 'ready', 1, 0`,
		`3, 9, 12, 'q', 'ready', 1, 0`,
	} {
		storetest.Exec(t, pool, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, state, attempt, tries, run_created_at, until, started_at, worker_id)
SELECT '`+account+`', ('00000000-0000-7000-8000-00000000000' || run)::uuid, ordinal, last, provider, state, attempt, tries,
  '2026-11-01T00:00Z', '2026-11-02T00:00Z', '2026-11-03T00:00Z', '00000000-0000-7000-8000-000000000009'
FROM (VALUES (`+lease+`)) AS l (run, ordinal, last, provider, state, attempt, tries)`)
	}

	reading, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Rollback(t.Context())
	if _, err := reading.Exec(t.Context(), `SELECT FROM job_leases WHERE account_id = $1`, account); err != nil {
		t.Fatal(err)
	}
	if _, err := (schema.Config{}).Locking(50*time.Millisecond, 1).Migrate(t.Context(), pool); !store.IsLockTimeout(err) {
		t.Errorf("while a transaction has read leases: got error %v, want that of a lock timeout", err)
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if applied, err := schema.Migrate(t.Context(), pool); err != nil || fmt.Sprint(names(applied)) != "[0010_split_leases]" {
		t.Fatalf("applied %v, error %v", names(applied), err)
	}

	rows, err := pool.Query(t.Context(), `
SELECT concat_ws(', ', right(run_id::text, 1), ordinal, last_ordinal, provider_code, state, attempt, tries)
FROM job_leases WHERE (run_created_at, until, started_at, worker_id) =
  ('2026-11-01T00:00Z', '2026-11-02T00:00Z', '2026-11-03T00:00Z', '00000000-0000-7000-8000-000000000009')
ORDER BY run_id, ordinal`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1, 1, 4, p, held, 1, 0", "1, 5, 8, p, held, 1, 0", "1, 9, 12, p, held, 1, 0",
		"2, 1, 4, p, held, 2, 1",
		"3, 1, 2, p, held, 1, 0", "3, 3, 4, q, waiting, 3, 2", "3, 5, 5, q, waiting, 3, 2", "3, 6, 8, q, ready, 1, 0", "3, 9, 12, q, ready, 1, 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}

package schema_test

import (
	"fmt"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// TestReturnedJobs: migration 0011 counts the returned jobs of running runs, instead of those that workers have.
func TestReturnedJobs(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	storetest.Exec(t, pool, `DELETE FROM schema_migrations WHERE version = 11`)
	storetest.Exec(t, pool, `ALTER TABLE measurement_runs RENAME COLUMN jobs_returned TO jobs_running`)
	storetest.Exec(t, pool, `ALTER TABLE measurement_runs RENAME CONSTRAINT measurement_runs_jobs_returned_check TO measurement_runs_jobs_running_check`)
	const account = `00000000-0000-7000-8000-000000000001`
	storetest.Exec(t, pool, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, jobs_running, started_at, finished_at)
  SELECT '`+account+`', ('00000000-0000-7000-8000-00000000000' || n)::uuid, gen_random_uuid(), status, 'grounded', 'AIVM-1.0', '{a}', '{q}', 9,
    'it-IT', 'IT', 'it', 9, running, now(), CASE status WHEN 'canceled' THEN now() END
  FROM (VALUES (1, 'running', 3), (2, 'running', 2), (3, 'canceled', 0)) AS runs (n, status, running)`)
	storetest.Exec(t, pool, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, state, attempt, tries, run_created_at, until, started_at, worker_id)
SELECT '`+account+`', ('00000000-0000-7000-8000-00000000000' || run)::uuid, ordinal, last, 'p', state, 1, 0, now(), now(), now(), gen_random_uuid()
FROM (VALUES (1, 1, 3, 'held'), (1, 4, 5, 'waiting'), (1, 7, 7, 'ready'), (2, 1, 2, 'held'), (3, 1, 1, 'waiting')) AS l (run, ordinal, last, state)`)
	if applied, err := schema.Migrate(t.Context(), pool); err != nil || fmt.Sprint(names(applied)) != "[0011_returned_jobs]" {
		t.Fatalf("applied %v, error %v", names(applied), err)
	}
	rows, err := pool.Query(t.Context(), `SELECT jobs_returned FROM measurement_runs ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{3, 0, 0}, got); diff != "" {
		t.Errorf("returned jobs of the runs (-want +got):\n%s", diff)
	}
}

package schema_test

import (
	"strings"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestMigratedLeases: migration 0010 splits the leases of several models, and 0011 counts the returned jobs of running
// runs, instead of those that workers have.
func TestMigratedLeases(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	// Each run is a number, a status, models and the repetitions of its two questions. Each lease is a run, the first and
	// the last ordinal, provider, state, attempt and tries.
	runs := []string{`1, 'running', '{a,b,c}', 2`, `2, 'running', '{a}', 2`, `3, 'running', '{a,b,c}', 2`, `4, 'canceled', '{a}', 5`}
	leases := []string{`1, 1, 12, 'p', 'held', 1, 0`, `2, 1, 4, 'p', 'held', 2, 1`, `3, 1, 2, 'p', 'held', 1, 0`,
		`3, 3, 5, 'q', 'waiting', 3, 2`, `3, 6, 8, 'q', 'ready', 1, 0`, `3, 9, 12, 'q', 'ready', 1, 0`, `4, 1, 1, 'p', 'waiting', 1, 0`}
	storetest.Exec(t, pool, `DELETE FROM schema_migrations WHERE version IN (10, 11)`, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids,
    question_ids, repetitions, locale, country, language, total_jobs, started_at, finished_at)
  SELECT `+ourAccount+`, ('00000000-0000-7000-8000-00000000000' || n)::uuid, gen_random_uuid(), status, 'grounded',
    'AIVM-1.0', models::text[], '{q,r}', repetitions, 'it-IT', 'IT', 'it', cardinality(models::text[]) * 2 * repetitions, now(),
    CASE status WHEN 'canceled' THEN now() END
  FROM (VALUES (`+strings.Join(runs, "), (")+`)) AS runs (n, status, models, repetitions)`, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, state, attempt, tries,
    run_created_at, until, started_at, worker_id)
  SELECT `+ourAccount+`, ('00000000-0000-7000-8000-00000000000' || run)::uuid, ordinal, last, provider, state, attempt, tries,
    '2026-11-01T00:00Z', '2026-11-02T00:00Z', '2026-11-03T00:00Z', '00000000-0000-7000-8000-000000000009'
  FROM (VALUES (`+strings.Join(leases, "), (")+`)) AS l (run, ordinal, last, provider, state, attempt, tries)`,
		`UPDATE measurement_runs SET jobs_returned = 3 WHERE status = 'running'`, // the jobs that workers have
		`ALTER TABLE measurement_runs RENAME COLUMN jobs_returned TO jobs_running`,
		`ALTER TABLE measurement_runs
			RENAME CONSTRAINT measurement_runs_jobs_returned_check TO measurement_runs_jobs_running_check`)
	applied, err := schema.Migrate(t.Context(), pool)
	must(t, err)
	equal(t, "0010_split_leases 0011_returned_jobs", names(applied), "applied")
	want := []string{
		"1, 1, 4, p, held, 1, 0", "1, 5, 8, p, held, 1, 0", "1, 9, 12, p, held, 1, 0",
		"2, 1, 4, p, held, 2, 1",
		"3, 1, 2, p, held, 1, 0", "3, 3, 4, q, waiting, 3, 2", "3, 5, 5, q, waiting, 3, 2",
		"3, 6, 8, q, ready, 1, 0", "3, 9, 12, q, ready, 1, 0",
		"4, 1, 1, p, waiting, 1, 0",
	}
	equal(t, want, column[string](t, pool, `
SELECT concat_ws(', ', right(run_id::text, 1), ordinal, last_ordinal, provider_code, state, attempt, tries)
FROM job_leases WHERE (run_created_at, until, started_at, worker_id) =
  ('2026-11-01T00:00Z', '2026-11-02T00:00Z', '2026-11-03T00:00Z', '00000000-0000-7000-8000-000000000009')
ORDER BY run_id, ordinal`), "leases")
	returned := column[int](t, pool, `SELECT jobs_returned FROM measurement_runs ORDER BY id`)
	equal(t, []int{0, 0, 10, 0}, returned, "returned jobs of the runs")
}

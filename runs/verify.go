package runs

import "aiv/store"

// Invariants returns what always holds for the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{
		{
			Name: "run_jobs",
			Doc:  "A run has one job for each model, question and repetition.",
			Query: `
SELECT format('run %s of account %s: %s jobs, ordinals %s to %s, want %s', r.id, r.account_id, COALESCE(j.n, 0), j.first, j.last, r.total_jobs)
FROM measurement_runs r
LEFT JOIN (SELECT account_id, run_id, count(*) AS n, min(ordinal) AS first, max(ordinal) AS last FROM measurement_jobs GROUP BY 1, 2) j
  ON (j.account_id, j.run_id) = (r.account_id, r.id)
WHERE (j.n, j.first, j.last) IS DISTINCT FROM (r.total_jobs::bigint, 1, r.total_jobs)`,
		},
		{
			Name: "job_run",
			Doc:  "A job belongs to a run.",
			Query: `
SELECT DISTINCT format('jobs of run %s of account %s, which does not exist', j.run_id, j.account_id) FROM measurement_jobs j
WHERE NOT EXISTS (SELECT FROM measurement_runs r WHERE (r.account_id, r.id) = (j.account_id, j.run_id))`,
		},
		{
			Name: "run_state",
			Doc:  "The state of a run follows from its counters.",
			Query: `
SELECT format('run %s of account %s: %s with %s jobs, %s returned, %s completed, %s failed, %s canceled', id, account_id, status, total_jobs,
  jobs_returned, jobs_completed, jobs_failed, jobs_canceled)
FROM measurement_runs
WHERE NOT CASE status
  WHEN 'queued' THEN jobs_returned + jobs_completed + jobs_failed + jobs_canceled = 0
  WHEN 'running' THEN jobs_canceled = 0 AND jobs_completed + jobs_failed < total_jobs
  WHEN 'completed' THEN jobs_completed = total_jobs
  WHEN 'failed' THEN jobs_failed = total_jobs
  WHEN 'partial' THEN jobs_completed > 0 AND jobs_failed > 0 AND jobs_completed + jobs_failed = total_jobs
  ELSE jobs_returned = 0 AND jobs_canceled > 0 AND jobs_completed + jobs_failed + jobs_canceled = total_jobs END`,
		},
		{
			Name: "run_references",
			Doc:  "A run's credential belongs to its account, and its methodology exists.",
			Query: `
SELECT format('run %s of account %s: credential %s, methodology %s', r.id, r.account_id, r.credential_id, r.methodology_version)
FROM measurement_runs r
WHERE NOT EXISTS (SELECT FROM credentials c WHERE (c.account_id, c.id) = (r.account_id, r.credential_id))
  OR NOT EXISTS (SELECT FROM methodologies m WHERE m.version = r.methodology_version)`,
		},
		{
			Name: "run_models",
			Doc:  "measurement_run_models has one row for each model of each run.",
			Query: `
SELECT format('run %s of account %s, model %s', COALESCE(r.id, m.run_id), COALESCE(r.account_id, m.account_id), COALESCE(r.model_id, m.model_id))
FROM (SELECT account_id, id, created_at, unnest(model_ids) AS model_id FROM measurement_runs) r
FULL JOIN measurement_run_models m ON (m.account_id, m.run_id, m.created_at, m.model_id) = (r.account_id, r.id, r.created_at, r.model_id)
WHERE r.id IS NULL OR m.run_id IS NULL`,
		},
		{
			Name: "run_usage",
			Doc:  "A run has one usage record, which repeats the run.",
			Query: `
SELECT format('run %s of account %s', COALESCE(r.id, u.run_id), COALESCE(r.account_id, u.account_id))
FROM measurement_runs r FULL JOIN usage_records u ON (u.account_id, u.run_id) = (r.account_id, r.id)
WHERE (r.id, r.credential_id, r.total_jobs, r.measurement_type, r.methodology_version, r.created_at) IS DISTINCT FROM
  (u.run_id, u.credential_id, u.jobs, u.measurement_type, u.methodology_version, u.created_at)`,
		},
		{
			// Of purged jobs only the number is known, not how they ended. So completed, failed and canceled jobs are
			// compared as a sum, and each of them may only exceed what the runs have.
			Name: "account_months",
			Doc:  "An account's totals of a month equal the sums over its runs and the runs that were purged.",
			Query: `
SELECT format('account %s, month %s: %s runs, %s jobs, %s completed, %s failed, %s canceled; its runs have %s, %s, %s, %s, %s',
  account_id, month, m.runs, m.jobs_ordered, m.jobs_completed, m.jobs_failed, m.jobs_canceled, r.runs, r.ordered, r.completed, r.failed, r.canceled)
FROM account_months m
FULL JOIN (
  SELECT account_id, date_trunc('month', created_at, 'UTC') AS month, count(*) AS runs, sum(total_jobs) AS ordered,
    COALESCE(sum(jobs_completed) FILTER (WHERE finished_at IS NOT NULL), 0) AS completed,
    COALESCE(sum(jobs_failed) FILTER (WHERE finished_at IS NOT NULL), 0) AS failed,
    COALESCE(sum(jobs_canceled) FILTER (WHERE finished_at IS NOT NULL), 0) AS canceled
  FROM measurement_runs GROUP BY 1, 2) r USING (account_id, month)
WHERE (m.runs - m.runs_purged, m.jobs_ordered - m.jobs_purged, m.jobs_completed + m.jobs_failed + m.jobs_canceled - m.jobs_purged)
    IS DISTINCT FROM (COALESCE(r.runs, 0), COALESCE(r.ordered, 0), COALESCE(r.completed + r.failed + r.canceled, 0))
  OR m.jobs_completed < r.completed OR m.jobs_failed < r.failed OR m.jobs_canceled < r.canceled`,
		},
	}
}

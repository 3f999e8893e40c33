package jobs

import "aiv/store"

// Invariants returns the invariants of the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{
		{
			Name: "run_counters",
			Doc:  "The counters of a run equal its leases and results.",
			Query: `
SELECT format('run %s of account %s, %s: %s returned, %s completed, %s failed; its rows: %s, %s, %s', r.id, r.account_id, r.status,
  r.jobs_returned, r.jobs_completed, r.jobs_failed, COALESCE(l.returned, 0), COALESCE(e.completed, 0), COALESCE(e.failed, 0))
FROM measurement_runs r
LEFT JOIN (` + leasedJobs + `) l ON (l.account_id, l.run_id) = (r.account_id, r.id)
LEFT JOIN (` + finalJobs + `) e ON (e.account_id, e.run_id) = (r.account_id, r.id)
WHERE (r.jobs_returned, r.jobs_completed, r.jobs_failed) IS DISTINCT FROM
  (CASE WHEN r.status = 'canceled' THEN 0 ELSE COALESCE(l.returned, 0) END, COALESCE(e.completed, 0), COALESCE(e.failed, 0))`,
		},
		{
			Name: "job_once",
			Doc:  "Each job of a run that is not canceled is in one row of the queue, the leases or the results, unless the run has just arrived.",
			Query: `
SELECT format('run %s of account %s, %s: %s jobs, of which %s are queued, %s leased, %s final', r.id, r.account_id, r.status, r.total_jobs,
  COALESCE(q.jobs, 0), COALESCE(l.jobs, 0), COALESCE(e.completed + e.failed, 0))
FROM measurement_runs r
LEFT JOIN (SELECT account_id, run_id, sum(last_ordinal - next_ordinal + 1) AS jobs FROM job_queue GROUP BY 1, 2) q
  ON (q.account_id, q.run_id) = (r.account_id, r.id)
LEFT JOIN (` + leasedJobs + `) l ON (l.account_id, l.run_id) = (r.account_id, r.id)
LEFT JOIN (` + finalJobs + `) e ON (e.account_id, e.run_id) = (r.account_id, r.id)
WHERE r.status <> 'canceled'
  AND NOT EXISTS (SELECT FROM job_arrivals a WHERE (a.account_id, a.run_id) = (r.account_id, r.id) AND r.status = 'queued')
  AND r.total_jobs <> COALESCE(q.jobs, 0) + COALESCE(l.jobs, 0) + COALESCE(e.completed + e.failed, 0)
UNION ALL
(
WITH pending AS (
  SELECT account_id, run_id, next_ordinal AS first, last_ordinal AS last FROM job_queue
  UNION ALL SELECT account_id, run_id, ordinal, last_ordinal FROM job_leases
), ordered AS (
  SELECT *, lead(first) OVER (PARTITION BY account_id, run_id ORDER BY first, last) AS next FROM pending
)
SELECT format('run %s of account %s: jobs %s to %s overlap the next from %s', run_id, account_id, first, last, next) FROM ordered WHERE next <= last
UNION ALL
SELECT format('run %s of account %s: job %s is final and among the jobs %s to %s', e.run_id, e.account_id, e.ordinal, p.first, p.last)
FROM pending p JOIN job_results e ON e.account_id = p.account_id AND e.run_id = p.run_id AND e.ordinal BETWEEN p.first AND p.last)`,
		},
		{
			Name: "lease_of_one_model",
			Doc:  "A lease has jobs of one model, because claims read the model of its first job.",
			Query: `
SELECT format('run %s of account %s: the lease of jobs %s to %s has several models', l.run_id, l.account_id, l.ordinal, l.last_ordinal)
FROM job_leases l JOIN measurement_runs r ON (r.account_id, r.id) = (l.account_id, l.run_id)
WHERE (l.ordinal - 1) / (r.total_jobs / cardinality(r.model_ids)) <> (l.last_ordinal - 1) / (r.total_jobs / cardinality(r.model_ids))`,
		},
		{
			Name: "job_run_exists",
			Doc:  "Rows about jobs refer to a run that exists, and to jobs that it has.",
			Query: `
SELECT format('run %s of account %s: %s rows beyond its jobs', j.run_id, j.account_id, count(*))
FROM (
  SELECT account_id, run_id, last_ordinal AS last FROM job_queue
  UNION ALL SELECT account_id, run_id, last_ordinal FROM job_leases
  UNION ALL SELECT account_id, run_id, ordinal FROM job_results
  UNION ALL SELECT account_id, run_id, ordinal FROM job_attempts
  UNION ALL SELECT account_id, run_id, 1 FROM job_arrivals) j
LEFT JOIN measurement_runs r ON (r.account_id, r.id) = (j.account_id, j.run_id)
WHERE r.id IS NULL OR j.last > r.total_jobs
GROUP BY j.run_id, j.account_id`,
		},
		{
			Name: "job_turns",
			Doc:  "An account that has jobs to hand out at a provider has a turn there.",
			Query: `
SELECT format('account %s at %s has jobs and no turn', j.account_id, j.provider_code)
FROM (
  SELECT account_id, provider_code FROM job_queue
  UNION SELECT account_id, provider_code FROM job_leases WHERE state = 'ready') j
WHERE NOT EXISTS (SELECT FROM job_turns t WHERE (t.account_id, t.provider_code) = (j.account_id, j.provider_code))`,
		},
		{
			Name: "job_holds",
			Doc:  "The count of held jobs of a run at a provider equals the jobs of its held leases.",
			Query: `
SELECT format('run %s of account %s at %s: %s jobs are counted as held, %s are', h.run_id, h.account_id, h.provider_code, h.jobs, COALESCE(l.jobs, 0))
FROM job_holds h LEFT JOIN (
  SELECT account_id, run_id, provider_code, sum(last_ordinal - ordinal + 1) AS jobs FROM job_leases WHERE state = 'held' GROUP BY 1, 2, 3) l
  ON (l.account_id, l.run_id, l.provider_code) = (h.account_id, h.run_id, h.provider_code)
WHERE h.jobs <> COALESCE(l.jobs, 0)`,
		},
	}
}

const (
	// leasedJobs counts the jobs of each run in leases, and finalJobs the jobs that have ended with a result.
	leasedJobs = `
SELECT account_id, run_id, sum(last_ordinal - ordinal + 1) AS jobs, COALESCE(sum(last_ordinal - ordinal + 1) FILTER (WHERE state <> 'held'), 0) AS returned
FROM job_leases GROUP BY account_id, run_id`

	finalJobs = `
SELECT account_id, run_id, count(*) FILTER (WHERE error_code IS NULL AND NOT canceled) AS completed, count(*) FILTER (WHERE error_code IS NOT NULL) AS failed
FROM job_results GROUP BY account_id, run_id`
)

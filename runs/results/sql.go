package results

import "aiv/runs"

// selectRun reads the parameters of a run that determine its jobs, and their number in each state. It finds the run
// through the primary key only; see the statement of the same name in package runs.
var selectRun = `
SELECT r.model_ids, r.question_ids, r.repetitions::integer, r.total_jobs, ` + runs.RunningJobs("$1") + `, r.jobs_completed, r.jobs_failed, r.jobs_canceled
FROM measurement_runs r
WHERE r.account_id = $1 AND r.id >= $2 AND r.id <= $2 ORDER BY r.account_id, r.id LIMIT 1`

// selectSpans returns the jobs with one of the statuses $6 among those $3[i] to $4[i], each i about jobs of one model.
// They are unordered, and include at least the first $5 of each i, table and status. In a canceled run, jobs are
// completed, failed or canceled; in other runs, no job is canceled.
//
// The statement may pass over many rows, so subqueries without tables, which are evaluated once, compare the statuses.
// Failed jobs have a separate index. The jobs of a model are claimed in their order, so that no job after the last one
// with a row was claimed.
const selectSpans = `
SELECT o.first, o.last
FROM unnest($3::integer[], $4::integer[]) AS k (first, last)
CROSS JOIN LATERAL (
  (SELECT e.ordinal, e.ordinal FROM job_results e
   WHERE $6::text[] && '{completed,canceled}' AND e.account_id = $1 AND e.run_id = $2 AND e.ordinal >= k.first AND e.ordinal <= k.last
     AND CASE WHEN e.canceled THEN (SELECT 'canceled' = ANY ($6)) WHEN e.error_code IS NULL THEN (SELECT 'completed' = ANY ($6))
       ELSE (SELECT 'failed' = ANY ($6)) END
   ORDER BY e.account_id, e.run_id, e.ordinal LIMIT $5)
  UNION ALL
  (SELECT e.ordinal, e.ordinal FROM job_results e
   WHERE 'failed' = ANY ($6) AND NOT $6 && '{completed,canceled}'
     AND e.account_id = $1 AND e.run_id = $2 AND e.ordinal >= k.first AND e.ordinal <= k.last AND e.error_code IS NOT NULL
   ORDER BY e.account_id, e.run_id, e.ordinal LIMIT $5)
  UNION ALL
  (SELECT GREATEST(l.ordinal, k.first), LEAST(l.last_ordinal, k.last) FROM job_leases l
   WHERE $6 && '{queued,running,canceled}' AND l.account_id = $1 AND l.run_id = $2 AND l.ordinal <= k.last AND l.last_ordinal >= k.first
     AND l.ordinal >= COALESCE((
       SELECT p.ordinal FROM job_leases p WHERE p.account_id = $1 AND p.run_id = $2 AND p.ordinal <= k.first ORDER BY p.ordinal DESC LIMIT 1), k.first)
     AND CASE WHEN (SELECT 'canceled' = ANY ($6)) THEN true WHEN l.state = 'held' THEN (SELECT 'running' = ANY ($6))
       ELSE (SELECT 'queued' = ANY ($6)) END
   ORDER BY l.account_id, l.run_id, l.ordinal LIMIT $5)
  UNION ALL
  SELECT GREATEST(k.first,
    (SELECT e.ordinal FROM job_results e WHERE e.account_id = $1 AND e.run_id = $2 AND e.ordinal <= k.last ORDER BY e.ordinal DESC LIMIT 1) + 1,
    (SELECT l.last_ordinal FROM job_leases l WHERE l.account_id = $1 AND l.run_id = $2 AND l.ordinal <= k.last ORDER BY l.ordinal DESC LIMIT 1) + 1), k.last
  WHERE $6 && '{queued,canceled}'
) o (first, last)`

// selectStates returns jobs without their answers, in one snapshot. A job without a row in job_results is in job_leases
// if a lease covers its ordinal, and otherwise was never claimed.
const selectStates = `
SELECT k.no,
  CASE WHEN e.canceled THEN 'canceled' WHEN e.error_code IS NOT NULL THEN 'failed' WHEN e.canceled IS NOT NULL THEN 'completed'
    WHEN r.status = 'canceled' THEN 'canceled' WHEN l.state = 'held' THEN 'running' ELSE 'queued' END,
  COALESCE(e.attempts, l.attempt, 0), COALESCE(e.started_at, l.started_at),
  COALESCE(e.finished_at, CASE WHEN r.status = 'canceled' THEN r.finished_at END), e.error_code, e.error_message, octet_length(e.answer)
FROM (
  SELECT r.status, r.finished_at FROM measurement_runs r
  WHERE r.account_id = $1 AND r.id >= $2 AND r.id <= $2 ORDER BY r.account_id, r.id LIMIT 1) r
CROSS JOIN unnest($3::integer[]) WITH ORDINALITY AS k (ordinal, no)
LEFT JOIN LATERAL (
  SELECT * FROM job_results e WHERE e.account_id = $1 AND e.run_id = $2 AND e.ordinal = k.ordinal OFFSET 0) e ON true
LEFT JOIN LATERAL (
  SELECT * FROM job_leases l WHERE l.account_id = $1 AND l.run_id = $2 AND l.ordinal <= k.ordinal ORDER BY l.ordinal DESC LIMIT 1
) l ON l.last_ordinal >= k.ordinal`

// selectAnswers reads the stored answers of jobs. OFFSET 0 makes it look up each ordinal.
const selectAnswers = `
SELECT k.ordinal, e.answer FROM unnest($3::integer[]) AS k (ordinal)
CROSS JOIN LATERAL (
  SELECT answer FROM job_results e WHERE e.account_id = $1 AND e.run_id = $2 AND e.ordinal = k.ordinal OFFSET 0) e`

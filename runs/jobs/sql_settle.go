package jobs

import (
	"aiv/auth"
	"aiv/store"
)

// readClockAndRevoked returns the time, and which of the workers $1 are revoked. It follows lockRuns.
var readClockAndRevoked = `SELECT ` + store.BoundIdle + `, clock_timestamp(), ` + auth.RevokedWorkersSQL("$1")

// readLeases returns the leases of ranges of jobs.
const readLeases = `
SELECT l.account_id, l.run_id, l.ordinal, l.last_ordinal, l.provider_code, l.run_created_at, l.state, l.attempt, l.tries, l.until,
  l.started_at, l.worker_id
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[]) AS k (account_id, run_id, first, last)
CROSS JOIN LATERAL (
  (SELECT * FROM job_leases l WHERE l.account_id = k.account_id AND l.run_id = k.run_id AND l.ordinal <= k.first ORDER BY l.ordinal DESC LIMIT 1)
  UNION ALL
  SELECT * FROM job_leases l WHERE l.account_id = k.account_id AND l.run_id = k.run_id AND l.ordinal > k.first AND l.ordinal <= k.last) l
WHERE l.last_ordinal >= k.first`

// readRecords returns the recorded ends of jobs and attempts of existing runs. A job beyond the last of its run has no
// model.
const readRecords = `
SELECT k.no, m.provider_code, a.outcome, e.attempts, e.settled, e.error_code
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::smallint[]) WITH ORDINALITY AS k (account_id, run_id, ordinal, attempt, no)
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE ` + isRun + `) r
CROSS JOIN LATERAL (
  SELECT provider_code FROM models WHERE id = r.model_ids[(k.ordinal - 1) / (cardinality(r.question_ids) * r.repetitions) + 1] OFFSET 0) m
LEFT JOIN LATERAL (
  SELECT outcome FROM job_attempts a WHERE a.account_id = k.account_id AND a.run_id = k.run_id AND a.ordinal = k.ordinal AND a.attempt = k.attempt
  OFFSET 0) a ON true
LEFT JOIN LATERAL (
  SELECT attempts, settled, error_code FROM job_results e
  WHERE e.account_id = k.account_id AND e.run_id = k.run_id AND e.ordinal = k.ordinal AND NOT e.canceled
  OFFSET 0) e ON true`

// insertAttempts records attempts that gave their job back, with their outcomes.
const insertAttempts = `
INSERT INTO job_attempts (account_id, run_id, ordinal, attempt, outcome)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::smallint[], $5::text[])`

// throttle never shortens a throttle that another transaction has written.
const throttle = `
INSERT INTO provider_throttles AS t (provider_code, until) SELECT * FROM unnest($1::text[], $2::timestamptz[])
ON CONFLICT (provider_code) DO UPDATE SET until = GREATEST(t.until, excluded.until)`

// updateRuns writes the counters and the status of runs. It follows lockRuns, under which they were computed.
const updateRuns = setRuns + runOf + `
WHERE r.ctid = found.tid`

// setRuns is the part of updateRuns before its condition. finished_at follows from the status, and jobs_counted grows
// by the jobs that have ended in this transaction, if they are counted.
const setRuns = `
UPDATE measurement_runs r SET status = k.status, jobs_returned = k.returned, jobs_completed = k.completed, jobs_failed = k.failed,
  finished_at = CASE WHEN k.status <> 'running' THEN $7::timestamptz END,
  jobs_counted = r.jobs_counted + CASE WHEN $8::boolean THEN k.completed + k.failed - r.jobs_completed - r.jobs_failed ELSE 0 END
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::integer[], $6::integer[]) AS k (account_id, run_id, status, returned, completed, failed)`

// expiredLeases returns up to 20 expired leases of each provider. It leaves out runs that another session has locked,
// because they would delay all others.
const expiredLeases = `
SELECT l.account_id, l.run_id, l.ordinal, l.last_ordinal, l.attempt
FROM providers p CROSS JOIN LATERAL (
  SELECT k.* FROM job_leases k CROSS JOIN LATERAL (
    SELECT FROM measurement_runs r WHERE ` + isRun + ` FOR NO KEY UPDATE SKIP LOCKED) r
  WHERE k.provider_code = p.code AND k.state = 'held' AND k.until <= now()
  ORDER BY k.provider_code, k.until LIMIT 20) l`

// overdueLeases returns leases that sweeps have skipped because their runs were locked. The order of runs is random, so
// that runs that stay locked do not always precede the same other runs.
const overdueLeases = `
SELECT l.account_id, l.run_id, l.ordinal, l.last_ordinal, l.attempt
FROM providers p CROSS JOIN LATERAL (
  SELECT * FROM job_leases l WHERE l.provider_code = p.code AND l.state = 'held' AND ` + isOverdue + `
  ORDER BY l.provider_code, l.until) l
` + shuffledRuns + ` LIMIT 200`

const (
	// A lease is overdue when about two sweeps have skipped it. The order of shuffledRuns changes with the time.
	isOverdue    = `until <= now() - interval '2 seconds'`
	shuffledRuns = `ORDER BY md5(run_id::text || now())`
)

package jobs

const (
	purgeMinutes = `DELETE FROM provider_minutes WHERE minute < now() - interval '1 day'`

	// A step is the rows after a key; if it is full, its last row is the key of the next.
	purgeAttemptsSQL = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, attempt, ctid AS tid` + stepOfAttempts + `DELETE FROM job_attempts a USING step k
  CROSS JOIN LATERAL (SELECT finished_at FROM measurement_runs r WHERE ` + isRun + `) r
  WHERE a.ctid = k.tid AND r.finished_at < now() - interval '1 hour'` + endOfStep

	citusPurgeAttempts = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, attempt` + stepOfAttempts + `DELETE FROM job_attempts a USING step s JOIN measurement_runs r ON r.account_id = s.account_id AND r.id = s.run_id
  WHERE (a.account_id, a.run_id, a.ordinal, a.attempt) = (s.account_id, s.run_id, s.ordinal, s.attempt)
    AND r.finished_at < now() - interval '1 hour'` + endOfStep

	stepOfAttempts = ` FROM job_attempts
  WHERE (account_id, run_id, ordinal, attempt) > ($1::uuid, $2::uuid, $3::integer, $4::smallint)
  ORDER BY account_id, run_id, ordinal, attempt LIMIT $5::integer
), last AS (
  SELECT account_id, run_id, ordinal, attempt FROM step ORDER BY account_id DESC, run_id DESC, ordinal DESC, attempt DESC LIMIT 1
), gone AS (
  `
	endOfStep = `
)
SELECT last.* FROM (SELECT) one LEFT JOIN last ON (SELECT count(*) FROM step) = $5`

	purgeAnswersSQL = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal FROM job_results WHERE answer IS NOT NULL AND finished_at < $2::timestamptz
  ORDER BY finished_at LIMIT $1::integer FOR UPDATE SKIP LOCKED
)
UPDATE job_results e SET answer = NULL FROM step s WHERE (e.account_id, e.run_id, e.ordinal) = (s.account_id, s.run_id, s.ordinal)`

	// citusPurgeAnswers is purgeAnswersSQL on Citus, which cannot lock the rows of several accounts with SELECT FOR UPDATE.
	citusPurgeAnswers = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal FROM job_results WHERE answer IS NOT NULL AND finished_at < $2::timestamptz ORDER BY finished_at LIMIT $1::integer
)
UPDATE job_results e SET answer = NULL FROM step s
WHERE e.account_id = s.account_id AND e.run_id = s.run_id AND e.ordinal = s.ordinal AND e.answer IS NOT NULL`

	hasPending = `
SELECT EXISTS (SELECT FROM job_arrivals WHERE account_id = $1 AND run_id = ANY ($2))
  OR EXISTS (SELECT FROM job_queue WHERE account_id = $1 AND run_id = ANY ($2))
  OR EXISTS (SELECT FROM job_leases WHERE account_id = $1 AND run_id = ANY ($2))`

	deleteArrivalsOfRuns = `DELETE FROM job_arrivals WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteQueueOfRuns    = `DELETE FROM job_queue WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteLeasesOfRuns   = `DELETE FROM job_leases WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteHoldsOfRuns    = `DELETE FROM job_holds WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteResultsOfRuns  = `DELETE FROM job_results WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteAttemptsOfRuns = `DELETE FROM job_attempts WHERE account_id = $1 AND run_id = ANY ($2)`

	deleteTurns = `
DELETE FROM job_turns t WHERE t.account_id = $1
  AND NOT EXISTS (SELECT FROM job_queue q WHERE q.account_id = t.account_id)
  AND NOT EXISTS (SELECT FROM job_leases l WHERE l.account_id = t.account_id)`
)

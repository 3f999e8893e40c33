package results

const selectOrdered = `
SELECT r.model_ids, r.question_ids, r.repetitions::integer, r.total_jobs FROM measurement_runs r
WHERE r.account_id = $1 AND r.id >= $2 AND r.id <= $2 ORDER BY r.account_id, r.id LIMIT 1`

// selectFinal, selectFailed and selectNotCompleted return the next ordinals after $3 and up to $4 of completed and failed jobs,
// of failed ones, and of all that are not completed. A canceled job may be among the first.
const (
	selectFinal = `
SELECT ordinal FROM job_results WHERE account_id = $1 AND run_id = $2 AND ordinal > $3 AND ordinal <= $4
ORDER BY account_id, run_id, ordinal LIMIT $5`

	selectFailed = `
SELECT ordinal FROM job_results WHERE account_id = $1 AND run_id = $2 AND ordinal > $3 AND ordinal <= $4 AND error_code IS NOT NULL
ORDER BY account_id, run_id, ordinal LIMIT $5`

	selectNotCompleted = `
SELECT o.ordinal FROM generate_series($3::integer + 1, $4::integer) AS o (ordinal)
WHERE NOT EXISTS (
  SELECT FROM job_results e
  WHERE e.account_id = $1 AND e.run_id = $2 AND e.ordinal > $3 AND e.ordinal <= $4 AND e.ordinal = o.ordinal AND e.error_code IS NULL AND NOT e.canceled)
ORDER BY o.ordinal LIMIT $5`
)

// selectStates returns the rows that determine the states of jobs, in one snapshot.
const selectStates = `
SELECT k.no, r.status, r.finished_at, e.attempts, e.canceled, e.started_at, e.finished_at, e.error_code, e.error_message, octet_length(e.answer),
  l.state = 'held', l.attempt, l.started_at
FROM (
  SELECT r.status, r.finished_at FROM measurement_runs r
  WHERE r.account_id = $1 AND r.id >= $2 AND r.id <= $2 ORDER BY r.account_id, r.id LIMIT 1) r
CROSS JOIN unnest($3::integer[]) WITH ORDINALITY AS k (ordinal, no)
LEFT JOIN LATERAL (
  SELECT * FROM job_results e WHERE e.account_id = $1 AND e.run_id = $2 AND e.ordinal = k.ordinal OFFSET 0) e ON true
LEFT JOIN LATERAL (
  SELECT * FROM job_leases l WHERE l.account_id = $1 AND l.run_id = $2 AND l.ordinal <= k.ordinal ORDER BY l.ordinal DESC LIMIT 1
) l ON l.last_ordinal >= k.ordinal`

const selectAnswers = `
SELECT k.ordinal, e.answer FROM unnest($3::integer[]) AS k (ordinal)
CROSS JOIN LATERAL (
  SELECT answer FROM job_results e WHERE e.account_id = $1 AND e.run_id = $2 AND e.ordinal = k.ordinal OFFSET 0) e`

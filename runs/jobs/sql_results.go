package jobs

const selectOrdered = `
SELECT r.model_ids, r.question_ids, r.repetitions::integer, r.total_jobs FROM measurement_runs r
WHERE (r.account_id, r.id) >= ($1, $2) AND (r.account_id, r.id) <= ($1, $2) ORDER BY r.account_id, r.id LIMIT 1`

// selectFinal and selectFailed return the next ordinals of final jobs, and of failed ones.
const (
	selectFinal  = `SELECT ordinal FROM job_results WHERE account_id = $1 AND run_id = $2 AND ordinal > $3 ORDER BY account_id, run_id, ordinal LIMIT $4`
	selectFailed = `
SELECT ordinal FROM job_results WHERE account_id = $1 AND run_id = $2 AND ordinal > $3 AND error_code IS NOT NULL
ORDER BY account_id, run_id, ordinal LIMIT $4`
)

// selectStates returns the rows that determine the states of jobs, in one snapshot.
const selectStates = `
SELECT k.no, r.status, r.finished_at, e.attempts, e.canceled, e.started_at, e.finished_at, e.error_code, e.error_message, octet_length(e.answer),
  l.state, l.attempt, l.started_at
FROM (
  SELECT r.status, r.finished_at FROM measurement_runs r
  WHERE (r.account_id, r.id) >= ($1, $2) AND (r.account_id, r.id) <= ($1, $2) ORDER BY r.account_id, r.id LIMIT 1) r
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

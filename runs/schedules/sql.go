package schedules

const (
	// countSchedules also returns the present time, from which the times of a new schedule are computed.
	countSchedules = `SELECT count(*), clock_timestamp() FROM schedules WHERE account_id = $1`

	// insertSchedule and updateSchedule return the fields of Listed, with the time of the change as its Now.
	insertSchedule = `
INSERT INTO schedules (account_id, id, name, status, paused_reason, cadence, at_minute, weekday, day, time_zone, model_ids, question_ids,
  repetitions, measurement_type, locale, country, language, min_change, next_at, credential_id, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $21)
RETURNING ` + columns + `, created_at`

	updateSchedule = `
UPDATE schedules SET name = $3, status = $4, paused_reason = $5, cadence = $6, at_minute = $7, weekday = $8, day = $9, time_zone = $10,
  model_ids = $11, question_ids = $12, repetitions = $13, measurement_type = $14, locale = $15, country = $16, language = $17,
  min_change = $18, next_at = $19, credential_id = $20, refused = $21, updated_at = $22
WHERE account_id = $1 AND id = $2
RETURNING ` + columns + `, updated_at`

	// raiseVersion invalidates the views of evaluations that are under way.
	raiseVersion = `UPDATE schedule_accounts SET version = version + 1 WHERE account_id = $1`

	// selectDue returns the earliest due schedule of each account, the longest due first, without the schedules that were
	// tried or are tried again later ($1) and the accounts that had their turn ($3). Both may be as many as the due
	// schedules, so they are in subqueries, which PostgreSQL hashes; in a generic plan it does not hash the array of ALL.
	// The time is read once: no index serves a comparison with a volatile function.
	selectDue = `
SELECT account_id, id FROM (
  SELECT DISTINCT ON (account_id) account_id, id, next_at FROM schedules
  WHERE next_at <= (SELECT clock_timestamp()) AND id NOT IN (SELECT unnest($1::uuid[]))
    AND account_id NOT IN (SELECT unnest($3::uuid[]))
  ORDER BY account_id, next_at, id) s
ORDER BY next_at, id LIMIT $2`

	// lockDue leaves a schedule to another process that has locked it.
	lockDue = `
SELECT ` + columns + `, clock_timestamp() FROM schedules
WHERE account_id = $1 AND id = $2 AND next_at <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED`

	insertOccurrence = `
INSERT INTO schedule_occurrences (account_id, schedule_id, due_at, last_due_at, count, status, code, detail, run_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
RETURNING ` + columnsOfOccurrence

	// carriedOut returns the schedule as of $10, because Citus rejects a volatile function in RETURNING.
	carriedOut = `
UPDATE schedules SET status = $3, paused_reason = $4, next_at = $5, last_due_at = $6, last_run_id = $7, refused = $8, updated_at = $9
WHERE account_id = $1 AND id = $2
RETURNING ` + columns + `, $10::timestamptz`

	runStatus = `SELECT status FROM measurement_runs WHERE account_id = $1 AND id = $2`
)

package jobs

import (
	"strings"

	"aiv/auth"
	"aiv/store"
)

// EnqueueSQL hands runs to the dispatchers, in the transaction that writes them. It reads them from a common table
// expression run (account_id, id).
const EnqueueSQL = `INSERT INTO job_arrivals (account_id, run_id) SELECT account_id, id FROM run`

// lockClaims serializes the transactions that hand out jobs, across all processes, so that turns and limits are exact.
// It returns the number of the transaction.
const lockClaims = `
SELECT ` + store.BoundIdle + `, pg_advisory_xact_lock(7019266183), nextval('job_turn_numbers')`

// readRevoked returns which of the workers $1 are revoked. It follows lockClaims, so that a claim that waited for the
// lock sees revocations since its start.
var readRevoked = `SELECT ` + auth.RevokedWorkersSQL("$1")

// admitArrivals queues the jobs of runs that have arrived, with the turn $1 for accounts that have none, and removes
// the jobs of runs that were canceled. Jobs that were claimed become canceled results, which keep their attempts. No
// other statement writes the leases or results of a canceled run.
var admitArrivals = `
WITH arrived AS MATERIALIZED (
  SELECT account_id, run_id, canceled, ctid AS tid FROM job_arrivals ORDER BY account_id, run_id, canceled LIMIT 1000
), gone AS (
  DELETE FROM job_arrivals a USING arrived d WHERE a.ctid = d.tid
), run AS (
  SELECT r.account_id, r.id, r.created_at, r.model_ids, r.total_jobs / cardinality(r.model_ids) AS jobs_per_model
  FROM arrived k CROSS JOIN LATERAL (SELECT * FROM measurement_runs r WHERE ` + isRun + `) r
  WHERE NOT k.canceled AND r.status IN ('queued', 'running')
), queued AS (
  INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
  SELECT run.account_id, run.id, m.no, p.provider_code, run.created_at, (m.no - 1) * jobs_per_model + 1, m.no * jobs_per_model
  FROM run CROSS JOIN LATERAL unnest(run.model_ids) WITH ORDINALITY m (id, no)
  CROSS JOIN LATERAL (SELECT provider_code FROM models WHERE models.id = m.id OFFSET 0) p
  RETURNING account_id, provider_code
), turn AS (
  INSERT INTO job_turns (account_id, provider_code, turn)
  SELECT DISTINCT account_id, provider_code, $1::bigint FROM queued
  ON CONFLICT DO NOTHING
), unqueued AS (
  DELETE FROM job_queue q USING arrived k` + rowOf("job_queue", "account_id", "run_id") + ` WHERE k.canceled AND q.ctid = found.tid
), unleased AS (
  DELETE FROM job_leases l USING arrived k` + rowOf("job_leases", "account_id", "run_id") + ` WHERE k.canceled AND l.ctid = found.tid
  RETURNING l.account_id, l.run_id, l.ordinal, l.last_ordinal, l.attempt, l.started_at
)
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, canceled, started_at, finished_at)
SELECT k.account_id, k.run_id, o.ordinal, k.attempt, false, true, k.started_at, r.finished_at
FROM unleased k CROSS JOIN LATERAL (SELECT finished_at FROM measurement_runs r WHERE ` + isRun + `) r
CROSS JOIN generate_series(k.ordinal, k.last_ordinal) AS o (ordinal)`

// admitDue makes jobs ready that have waited long enough for another try. It skips rows that another transaction
// changes; the next call finds them.
const admitDue = `
WITH due AS MATERIALIZED (
  SELECT ctid AS tid FROM job_leases WHERE state = 'waiting' AND until <= (SELECT clock_timestamp()) ORDER BY until LIMIT 1000
), ready AS (
  UPDATE job_leases l SET state = 'ready' FROM due d WHERE l.ctid = d.tid
  RETURNING l.account_id, l.provider_code
)
INSERT INTO job_turns (account_id, provider_code, turn)
SELECT DISTINCT account_id, provider_code, $1::bigint FROM ready
ON CONFLICT DO NOTHING`

// turnsOf selects the rows of job_turns of account n; see rowOf.
const turnsOf = `(
  SELECT * FROM job_turns t WHERE t.account_id >= n.account_id AND t.account_id <= n.account_id ORDER BY t.account_id, t.provider_code) o`

// lockRuns locks runs in the order given, by their keys, and returns them.
const lockRuns = `
SELECT r.account_id, r.id, r.status, r.total_jobs, r.total_jobs / cardinality(r.model_ids), r.jobs_returned, r.jobs_completed, r.jobs_failed
FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE ` + isRun + ` FOR NO KEY UPDATE) r`

// isRun is the end of a subquery that finds run r by key k through its primary key only; see rowOf.
const isRun = `r.account_id = k.account_id AND r.id >= k.run_id AND r.id <= k.run_id ORDER BY r.account_id, r.id LIMIT 1`

// runOf finds the run of each key k, for a statement that changes it.
const runOf = `
CROSS JOIN LATERAL (SELECT ctid AS tid FROM measurement_runs r WHERE ` + isRun + `) found`

// rowOf finds the rows of a table that have the given columns of each key k, for a statement that changes them.
//
// If a table was nearly empty when it was last vacuumed, the planner assumes that it is empty until the next vacuum or
// analyze. A session also keeps its plans until then. A join with the keys may then read the whole table for each
// key, or an index that has the columns at its end.
//
// Neither can happen here. PostgreSQL does not flatten a subquery with ORDER BY, so it is evaluated for each key.
// Sorting and sequential scans are disabled (package store), so it reads the primary key, which is the only index in
// that order. The table is then read by ctid. The last column is compared as a range: the planner drops a column from
// the order that is compared for equality.
//
// A statement that finds a row by ctid leaves it out if another transaction updates it after the statement has begun,
// even if the subquery locks the row: its new version has another ctid. So the statement before it in the batch locks
// the rows (lockedChange, lockRuns). Only claims may leave out rows, if they then drop what they would have taken from
// these (startRuns, advanceQueue).
func rowOf(table string, columns ...string) string {
	return rowsByKey(table, "", columns)
}

// lockedRowOf is rowOf for the statement that locks the rows before.
func lockedRowOf(table string, columns ...string) string {
	return rowsByKey(table, " FOR UPDATE", columns)
}

// rowsByKey returns the subquery found of rowOf, with a lock or without.
func rowsByKey(table, lock string, columns []string) string {
	last := len(columns) - 1
	var where strings.Builder
	for _, c := range columns[:last] {
		where.WriteString("t." + c + " = k." + c + " AND ")
	}
	c := columns[last]
	return `
CROSS JOIN LATERAL (
  SELECT ctid AS tid FROM ` + table + ` t WHERE ` + where.String() + "t." + c + " >= k." + c + " AND t." + c + " <= k." + c + `
  ORDER BY t.` + strings.Join(columns, ", t.") + lock + `) found`
}

// startRuns starts runs that are queued, and locks no others. It leaves out those that are canceled at the same time. A
// condition on the status would let the planner read all open runs.
const startRuns = `
UPDATE measurement_runs r SET status = 'running', started_at = $3 FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)` + runOf + `
WHERE r.ctid = found.tid AND r.started_at IS NULL AND r.finished_at IS NULL`

// takeReturned takes jobs from the returned jobs of runs that are not final. It follows lockRuns.
const takeReturned = `
UPDATE measurement_runs r SET jobs_returned = r.jobs_returned - k.jobs
FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, jobs)` + runOf + `
WHERE r.ctid = found.tid AND r.finished_at IS NULL`

// lockLeases locks leases by their keys, in the order given, for deleteLeases and deleteRunningLeases.
var lockLeases = `
SELECT FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)` +
	lockedRowOf("job_leases", "account_id", "run_id", "ordinal")

var deleteLeases = lockedChange{lockLeases, `
DELETE FROM job_leases l USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)` +
	rowOf("job_leases", "account_id", "run_id", "ordinal") + `
WHERE l.ctid = found.tid`, citusDeleteLeases}

// deleteRunningLeases deletes leases of runs that are running, and returns their keys. It follows lockRuns.
var deleteRunningLeases = lockedChange{lockLeases, `
DELETE FROM job_leases l USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)` +
	rowOf("job_leases", "account_id", "run_id", "ordinal") + ofRunning + `
WHERE r.status = 'running' AND l.ctid = found.tid RETURNING l.account_id, l.run_id, l.ordinal`, citusDeleteRunningLeases}

// ofRunning finds the status of the run of each key k. The condition is the statement's: r.status = 'running'.
const ofRunning = `
CROSS JOIN LATERAL (SELECT status FROM measurement_runs r WHERE ` + isRun + `) r`

// putLeases writes leases of runs that are running.
const putLeases = writeLeases + ofRunning + `
WHERE r.status = 'running'` + replaceLeases

// writeLeases is the part of putLeases before its condition, and replaceLeases what follows it. The started time of a
// lease never changes.
const writeLeases = `
INSERT INTO job_leases AS l (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until,
  started_at, worker_id)
SELECT k.* FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::text[], $6::timestamptz[], $7::text[], $8::smallint[],
  $9::smallint[], $10::timestamptz[], $11::timestamptz[], $12::uuid[]) AS k (account_id, run_id, ordinal, last_ordinal, provider_code,
  run_created_at, state, attempt, tries, until, started_at, worker_id)`

const replaceLeases = `
ON CONFLICT (account_id, run_id, ordinal) DO UPDATE SET last_ordinal = excluded.last_ordinal, state = excluded.state,
  attempt = excluded.attempt, tries = excluded.tries, until = excluded.until, worker_id = excluded.worker_id`

// advanceQueue and endQueue skip rows that changed since they were read, rows that were deleted because their run was
// canceled, and rows of runs that startRuns skipped. advanceQueue locks rows in the order given, which is the order of
// keys. It returns the rows that it updated, with the next ordinal that was read.
var (
	advanceQueue = `
UPDATE job_queue q SET next_ordinal = k.next
FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[], $5::integer[]) AS k (account_id, run_id, model_no, next, was)` +
		rowOf("job_queue", "account_id", "run_id", "model_no") + ofRunning + `
WHERE r.status = 'running' AND q.ctid = found.tid AND q.next_ordinal = k.was RETURNING q.account_id, q.run_id, k.was`

	endQueue = `
DELETE FROM job_queue q USING unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[]) AS k (account_id, run_id, model_no, was)` +
		rowOf("job_queue", "account_id", "run_id", "model_no") + ofRunning + `
WHERE r.status = 'running' AND q.ctid = found.tid AND q.next_ordinal = k.was`
)

// setTurns changes turns. No row is inserted: ON CONFLICT finds the row by its key whatever the statistics say, and
// changes its latest version.
const setTurns = `
INSERT INTO job_turns (account_id, provider_code, turn)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[])
ON CONFLICT (account_id, provider_code) DO UPDATE SET turn = excluded.turn`

// endTurns deletes turns. The provider comes first, because for a range of providers the planner could read
// job_turns_next, which begins with the provider, instead of the primary key.
var (
	lockTurns = `
SELECT FROM unnest($1::uuid[], $2::text[]) AS k (account_id, provider_code)` + lockedRowOf("job_turns", "provider_code", "account_id")

	endTurns = lockedChange{lockTurns, `
DELETE FROM job_turns t USING unnest($1::uuid[], $2::text[]) AS k (account_id, provider_code)` +
		rowOf("job_turns", "provider_code", "account_id") + ` WHERE t.ctid = found.tid`, citusEndTurns}
)

// countClaims adds claims to the minute, in UTC, of the time $3, by which openProviders reads them.
const countClaims = `
INSERT INTO provider_minutes AS m (provider_code, minute, claimed)
SELECT k.code, date_trunc('minute', $3::timestamptz, 'UTC'), k.claimed FROM unnest($1::text[], $2::integer[]) AS k (code, claimed)
ON CONFLICT (provider_code, minute) DO UPDATE SET claimed = m.claimed + excluded.claimed`

// describeGrants returns the parameters of ranges of jobs: the run, the model and the range's questions.
const describeGrants = `
SELECT k.no, r.measurement_type, r.methodology_version, r.locale, r.country, r.language, r.repetitions::integer,
  cardinality(r.question_ids), m.id, m.provider_model, q.first, q.ids, q.texts, q.languages, q.countries
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[]) WITH ORDINALITY AS k (account_id, run_id, first, last, no)
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE ` + isRun + `) r
CROSS JOIN LATERAL (
  SELECT id, provider_model FROM models WHERE id = r.model_ids[(k.first - 1) / (cardinality(r.question_ids) * r.repetitions) + 1] OFFSET 0) m
CROSS JOIN LATERAL (
  SELECT min(i.no)::integer AS first, array_agg(q.id ORDER BY i.no) AS ids, array_agg(q.text ORDER BY i.no) AS texts,
    array_agg(q.language ORDER BY i.no) AS languages, array_agg(q.country ORDER BY i.no) AS countries
  FROM generate_series((k.first - 1) / r.repetitions % cardinality(r.question_ids) + 1, (k.last - 1) / r.repetitions % cardinality(r.question_ids) + 1) AS i (no)
  CROSS JOIN LATERAL (
    SELECT id, text, language, country FROM questions WHERE id = r.question_ids[i.no]
    UNION ALL
    SELECT id, text, language, country FROM own_questions WHERE account_id = r.account_id AND id = r.question_ids[i.no] OFFSET 0) q) q`

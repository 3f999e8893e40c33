package jobs

import "aiv/store"

// The forms of statements on Citus, which cannot take the first rows of each of several accounts, nor lock the rows of
// several accounts with SELECT FOR UPDATE, nor derive from a join which accounts a statement is about.
//
// Most of them repeat the accounts as account_id = ANY ($1), so that Citus sends them only to the servers of these
// accounts.

// The steps of admitOnCitus.
var (
	citusArrivals = `
SELECT account_id, run_id, canceled FROM job_arrivals WHERE ` + store.AmongAccounts("account_id", "$1") + `
ORDER BY account_id, run_id, canceled LIMIT 1000`

	citusDue = `
SELECT account_id, run_id, ordinal FROM job_leases
WHERE state = 'waiting' AND until <= now() AND ` + store.AmongAccounts("account_id", "$1") + ` ORDER BY until LIMIT 1000`
)

const (
	// Each statement deletes rows of the runs with the accounts $1 and the ids $2.
	citusDeleteArrivals = `DELETE FROM job_arrivals k` + ofRuns + ` AND k.canceled = $3`
	citusUnqueue        = `DELETE FROM job_queue k` + ofRuns
	citusUnlease        = `DELETE FROM job_leases k` + ofRuns
	deleteHolds         = `DELETE FROM job_holds k` + ofRuns

	ofRuns = ` USING unnest($1::uuid[], $2::uuid[]) AS run (account_id, id)
WHERE k.account_id = run.account_id AND k.run_id = run.id AND k.account_id = ANY ($1)`

	// citusQueueOf returns the rows that citusEnqueue writes, of runs that are still open. Each model has an equal
	// share of the jobs, and its provider from the catalog.
	citusQueueOf = `
SELECT r.account_id, r.id, m.no::smallint, p.provider_code, r.created_at, (m.no - 1)::integer * r.jobs + 1, m.no::integer * r.jobs
FROM (
  SELECT r.account_id, r.id, r.model_ids, r.created_at, r.total_jobs / cardinality(r.model_ids) AS jobs
  FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id) JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id
  WHERE r.account_id = ANY ($1) AND r.status IN ('queued', 'running')) r
CROSS JOIN LATERAL unnest(r.model_ids) WITH ORDINALITY AS m (id, no) JOIN models p ON p.id = m.id`

	citusEnqueue = `
INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::text[], $5::timestamptz[], $6::integer[], $7::integer[])`

	// citusEnded returns the leases of canceled runs, which citusEndJobs writes as results of their jobs.
	citusEnded = `
SELECT l.account_id, l.run_id, l.ordinal, l.last_ordinal, l.attempt, l.started_at, r.finished_at
FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id) JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id
JOIN job_leases l ON l.account_id = r.account_id AND l.run_id = r.id
WHERE r.account_id = ANY ($1) AND l.account_id = ANY ($1)`

	citusEndJobs = `
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, canceled, started_at, finished_at)
SELECT account_id, run_id, ordinal, attempts, false, true, started_at, finished_at
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::smallint[], $5::timestamptz[], $6::timestamptz[])
  AS k (account_id, run_id, ordinal, attempts, started_at, finished_at)`

	// citusReady leaves out leases that another transaction has made ready or deleted.
	citusReady = `
UPDATE job_leases l SET state = 'ready' FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)
WHERE l.account_id = k.account_id AND l.run_id = k.run_id AND l.ordinal = k.ordinal AND l.state = 'waiting' AND l.account_id = ANY ($1)
RETURNING l.account_id, l.provider_code`

	citusAddTurns = `
INSERT INTO job_turns (account_id, provider_code, turn)
SELECT account_id, provider_code, $3::bigint FROM unnest($1::uuid[], $2::text[]) AS k (account_id, provider_code)
ON CONFLICT DO NOTHING`
)

// citusLockRuns locks rows by an update that changes nothing, in any order: Citus ends one of two transactions that
// wait for each other.
const citusLockRuns store.OnCitus = `
UPDATE measurement_runs r SET jobs_returned = r.jobs_returned FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)
WHERE r.account_id = k.account_id AND r.id = k.run_id AND r.account_id = ANY ($1)
RETURNING r.account_id, r.id, r.status, r.total_jobs, r.total_jobs / cardinality(r.model_ids), r.jobs_returned, r.jobs_completed, r.jobs_failed`

const (
	citusStartRuns store.OnCitus = `
UPDATE measurement_runs r SET status = 'running', started_at = $3 FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)
WHERE r.account_id = k.account_id AND r.id = k.run_id AND r.started_at IS NULL AND r.finished_at IS NULL AND r.account_id = ANY ($1)`

	citusTakeReturned store.OnCitus = `
UPDATE measurement_runs r SET jobs_returned = r.jobs_returned - k.jobs
FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, jobs)
WHERE r.account_id = k.account_id AND r.id = k.run_id AND r.finished_at IS NULL AND r.account_id = ANY ($1)`

	citusUpdateRuns store.OnCitus = setRuns + `
WHERE r.account_id = k.account_id AND r.id = k.run_id AND r.account_id = ANY ($1)`

	citusDeleteLeases store.OnCitus = `
DELETE FROM job_leases l USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)
WHERE l.account_id = k.account_id AND l.run_id = k.run_id AND l.ordinal = k.ordinal AND l.account_id = ANY ($1)`

	citusDeleteRunningLeases store.OnCitus = `
DELETE FROM job_leases l USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.status = 'running' AND r.account_id = ANY ($1)
WHERE l.account_id = k.account_id AND l.run_id = k.run_id AND l.ordinal = k.ordinal AND l.account_id = ANY ($1)
RETURNING l.account_id, l.run_id, l.ordinal`

	citusPutLeases store.OnCitus = writeLeases + `
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.status = 'running' AND r.account_id = ANY ($1)
WHERE true` + replaceLeases

	citusAdvanceQueue store.OnCitus = `
UPDATE job_queue q SET next_ordinal = k.next
FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[], $5::integer[]) AS k (account_id, run_id, model_no, next, was)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.status = 'running' AND r.account_id = ANY ($1)
WHERE q.account_id = k.account_id AND q.run_id = k.run_id AND q.model_no = k.model_no AND q.next_ordinal = k.was AND q.account_id = ANY ($1)
RETURNING q.account_id, q.run_id, k.was`

	citusEndQueue store.OnCitus = `
DELETE FROM job_queue q USING unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[]) AS k (account_id, run_id, model_no, was)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.status = 'running' AND r.account_id = ANY ($1)
WHERE q.account_id = k.account_id AND q.run_id = k.run_id AND q.model_no = k.model_no AND q.next_ordinal = k.was AND q.account_id = ANY ($1)`

	citusSetTurns store.OnCitus = `
UPDATE job_turns t SET turn = k.turn
FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS k (account_id, provider_code, turn)
WHERE t.account_id = k.account_id AND t.provider_code = k.provider_code AND t.account_id = ANY ($1)`

	citusEndTurns store.OnCitus = `
DELETE FROM job_turns t USING unnest($1::uuid[], $2::text[]) AS k (account_id, provider_code)
WHERE t.account_id = k.account_id AND t.provider_code = k.provider_code AND t.account_id = ANY ($1)`
)

// citusGrants and citusRecords are joins on the servers of the accounts. They have no common table expressions: they read
// reference tables, so Citus would send the result of such an expression to every server.
//
// Citus 13.0 cannot write generate_series in a subquery into the statements for its servers.
const citusGrants store.OnCitus = `
SELECT k.no, r.measurement_type, r.methodology_version, r.locale, r.country, r.language, r.repetitions::integer,
  cardinality(r.question_ids), m.id, m.provider_model, q.first, q.ids, q.texts, q.languages, q.countries
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[]) WITH ORDINALITY AS k (account_id, run_id, first, last, no)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.account_id = ANY ($1)
JOIN models m ON m.id = r.model_ids[(k.first - 1) / (cardinality(r.question_ids) * r.repetitions) + 1]
CROSS JOIN LATERAL (
  SELECT min(i.no)::integer AS first, array_agg(i.id ORDER BY i.no) AS ids, array_agg(COALESCE(s.text, o.text) ORDER BY i.no) AS texts,
    array_agg(COALESCE(s.language, o.language) ORDER BY i.no) AS languages, array_agg(COALESCE(s.country, o.country) ORDER BY i.no) AS countries
  FROM unnest(r.question_ids) WITH ORDINALITY AS i (id, no) LEFT JOIN questions s ON s.id = i.id
  LEFT JOIN own_questions o ON o.account_id = r.account_id AND o.id = i.id AND o.account_id = ANY ($1)
  WHERE i.no BETWEEN (k.first - 1) / r.repetitions % cardinality(r.question_ids) + 1
    AND (k.last - 1) / r.repetitions % cardinality(r.question_ids) + 1) q`

const citusRecords store.OnCitus = `
SELECT k.no, m.provider_code, a.outcome, e.attempts, e.settled, e.error_code
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::smallint[]) WITH ORDINALITY AS k (account_id, run_id, ordinal, attempt, no)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.account_id = ANY ($1) AND k.ordinal <= r.total_jobs
JOIN models m ON m.id = r.model_ids[(k.ordinal - 1) / (cardinality(r.question_ids) * r.repetitions) + 1]
LEFT JOIN job_attempts a ON a.account_id = r.account_id AND a.run_id = r.id AND a.ordinal = k.ordinal AND a.attempt = k.attempt
LEFT JOIN job_results e ON e.account_id = r.account_id AND e.run_id = r.id AND e.ordinal = k.ordinal AND NOT e.canceled`

const citusLeases store.OnCitus = `
WITH job_leases AS MATERIALIZED (
  SELECT l.* FROM (SELECT DISTINCT account_id, run_id FROM unnest($1::uuid[], $2::uuid[]) AS key (account_id, run_id)) key
  JOIN job_leases l ON l.account_id = key.account_id AND l.run_id = key.run_id
  WHERE l.account_id = ANY ($1)
)` + readLeases

var (
	// citusExpired and citusOverdue are expiredLeases and overdueLeases on Citus. They lock no runs, and take the
	// leases of all providers together.
	citusExpired = `
SELECT account_id, run_id, ordinal, last_ordinal, attempt FROM job_leases
WHERE state = 'held' AND until <= now() AND ` + store.AmongAccounts("account_id", "$1") + `
ORDER BY until LIMIT 200`

	citusOverdue = `
SELECT account_id, run_id, ordinal, last_ordinal, attempt FROM job_leases
WHERE state = 'held' AND ` + isOverdue + ` AND ` + store.AmongAccounts("account_id", "$1") + `
` + shuffledRuns + ` LIMIT 200`
)

// addHolds counts jobs of running runs as held; it follows the statement that starts the runs. changeHolds changes
// existing counts by signed numbers.
const (
	addHolds = `
INSERT INTO job_holds AS h (account_id, run_id, provider_code, jobs)
SELECT k.account_id, k.run_id, k.provider_code, k.jobs
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[]) AS k (account_id, run_id, provider_code, jobs)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.run_id AND r.status = 'running' AND r.account_id = ANY ($1)
ON CONFLICT (provider_code, account_id, run_id) DO UPDATE SET jobs = h.jobs + excluded.jobs`

	changeHolds = `
UPDATE job_holds h SET jobs = h.jobs + k.jobs FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[]) AS k (account_id, run_id, provider_code, jobs)
WHERE h.account_id = k.account_id AND h.run_id = k.run_id AND h.provider_code = k.provider_code`

	deleteEmptyHolds = `DELETE FROM job_holds k` + ofRuns + ` AND k.jobs = 0`
)

// citusPurgeAttempts is purgeAttemptsSQL on Citus.
const citusPurgeAttempts store.OnCitus = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, attempt` + stepOfAttempts + `DELETE FROM job_attempts a USING step s JOIN measurement_runs r ON r.account_id = s.account_id AND r.id = s.run_id
  WHERE (a.account_id, a.run_id, a.ordinal, a.attempt) = (s.account_id, s.run_id, s.ordinal, s.attempt)
    AND r.finished_at < now() - interval '1 hour'` + endOfStep

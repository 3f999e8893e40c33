package jobs

import (
	"fmt"
	"strings"

	"aiv/store"
)

// The shapes of statements on Citus, which cannot take the first rows of each of several accounts, nor lock the rows of
// several accounts with SELECT FOR UPDATE, nor derive from a join which accounts a statement is about.
//
// Most of them read what they need of the distributed tables first, by common table expressions with the names of the tables,
// and are then as on plain PostgreSQL.

// runsOfKeys are the runs of the keys in $1 and $2.
const runsOfKeys = `measurement_runs AS MATERIALIZED (
  SELECT r.* FROM unnest($1::uuid[], $2::uuid[]) AS key (account_id, run_id) JOIN measurement_runs r ON r.account_id = key.account_id AND r.id = key.run_id
  WHERE r.account_id = ANY ($1)
)`

// supplyTables are the rows that readSupply and claimable may read. Of job_queue they are the oldest of each account and
// provider; $2 is the number of jobs wanted.
const supplyTables = `
job_arrivals AS MATERIALIZED (SELECT run_id FROM job_arrivals LIMIT 1),
job_turns AS MATERIALIZED (SELECT account_id, provider_code, turn, any_turn FROM job_turns),
job_leases AS MATERIALIZED (
  SELECT * FROM job_leases WHERE state = 'ready' OR state = 'waiting' AND until <= now()
    OR state = 'held' AND provider_code IN (SELECT provider_code FROM provider_settings WHERE in_flight IS NOT NULL)
)`

const supplyQueue = `,
job_queue AS MATERIALIZED (
  SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY account_id, provider_code ORDER BY run_created_at, run_id, model_no) AS no FROM job_queue) q
  WHERE no <= ` + minSpans + ` + $2::integer
)`

var (
	citusSupply      = prefixed(supplyTables+supplyQueue, readSupply)
	citusSupplyOfAny = prefixed(supplyTables+supplyQueue, readSupplyOfAny)
	citusClaimable   = prefixed(supplyTables, claimable)
)

// prefixed puts common table expressions before those of a statement, if it has any.
func prefixed(tables, sql string) string {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(sql), "WITH "); ok {
		return "WITH " + tables + ", " + rest
	}
	return "WITH " + tables + " " + sql
}

// citusArrivals reads nothing but the arrivals that it deletes. They may be rows of a transaction that is committed on the coordinator
// only: then it waits for that transaction, and deletes nothing.
const citusArrivals = `
WITH oldest AS MATERIALIZED (
  SELECT account_id, run_id, canceled FROM job_arrivals ORDER BY account_id, run_id, canceled LIMIT 1000
), arrived AS (
  DELETE FROM job_arrivals a USING oldest o WHERE a.account_id = o.account_id AND a.run_id = o.run_id AND a.canceled = o.canceled
  RETURNING a.account_id, a.run_id, a.canceled
), run AS MATERIALIZED (
  SELECT r.account_id, r.id, r.created_at, r.model_ids, r.total_jobs / cardinality(r.model_ids) AS jobs_per_model
  FROM arrived d JOIN measurement_runs r ON r.account_id = d.account_id AND r.id = d.run_id
  WHERE NOT d.canceled AND r.status IN ('queued', 'running')
), queued AS (
  INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
  SELECT run.account_id, run.id, m.no, p.provider_code, run.created_at, (m.no - 1) * jobs_per_model + 1, m.no * jobs_per_model
  FROM run CROSS JOIN LATERAL unnest(run.model_ids) WITH ORDINALITY m (id, no) JOIN models p ON p.id = m.id
  RETURNING account_id, provider_code
), ` + citusTurns + `, unqueued AS (
  DELETE FROM job_queue q USING arrived d WHERE d.canceled AND q.account_id = d.account_id AND q.run_id = d.run_id
), unleased AS (
  DELETE FROM job_leases l USING arrived d WHERE d.canceled AND l.account_id = d.account_id AND l.run_id = d.run_id
  RETURNING l.account_id, l.run_id, l.ordinal, l.last_ordinal, l.attempt, l.started_at
), ended AS MATERIALIZED (
  SELECT u.*, r.finished_at FROM unleased u JOIN measurement_runs r ON r.account_id = u.account_id AND r.id = u.run_id
)
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, canceled, started_at, finished_at)
SELECT e.account_id, e.run_id, o.ordinal, e.attempt, false, true, e.started_at, e.finished_at
FROM ended e CROSS JOIN generate_series(e.ordinal, e.last_ordinal) AS o (ordinal)`

// citusTurns adds a turn for each account and provider of queued.
const citusTurns = `latest AS MATERIALIZED (
  SELECT account_id, max(any_turn) AS any_turn FROM job_turns WHERE account_id IN (SELECT account_id FROM queued) GROUP BY account_id
), turn AS (
  INSERT INTO job_turns (account_id, provider_code, turn, any_turn)
  SELECT DISTINCT n.account_id, n.provider_code, $1::bigint, COALESCE(o.any_turn, $1::bigint)
  FROM queued n LEFT JOIN latest o ON o.account_id = n.account_id
  ON CONFLICT DO NOTHING
  RETURNING 1
)`

const citusDue = `
WITH due AS MATERIALIZED (
  SELECT account_id, run_id, ordinal FROM job_leases WHERE state = 'waiting' AND until <= now() ORDER BY until LIMIT 1000
), queued AS (
  UPDATE job_leases l SET state = 'ready' FROM due d
  WHERE l.account_id = d.account_id AND l.run_id = d.run_id AND l.ordinal = d.ordinal AND l.state = 'waiting'
  RETURNING l.account_id, l.provider_code
), ` + citusTurns + `
SELECT 1 FROM turn`

// citusLockRuns locks rows by an update that changes nothing, in any order: Citus ends one of two transactions that wait for
// each other.
const citusLockRuns = `
UPDATE measurement_runs r SET jobs_running = r.jobs_running FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)
WHERE r.account_id = k.account_id AND r.id = k.run_id AND r.account_id = ANY ($1)
RETURNING r.account_id, r.id, r.status, r.total_jobs, r.jobs_running, r.jobs_completed, r.jobs_failed, r.created_at, r.started_at`

var (
	citusStartJobs = store.OfAccounts("r", startJobsOf+citusIsRun)
	citusMoveRuns  = store.OfAccounts("r", moveRunsOf+citusIsRun)
)

const citusIsRun = `r.account_id = k.account_id AND r.id = k.run_id`

var citusPutLeases = strings.Replace(putLeases, `
CROSS JOIN LATERAL (SELECT status FROM measurement_runs r WHERE `+isRun+` ORDER BY r.account_id, r.id LIMIT 1) r
WHERE r.status = 'running'`, `
JOIN measurement_runs r ON `+citusIsRun+` AND r.status = 'running' AND r.account_id = ANY ($1)`, 1)

// Citus 13.0 cannot write generate_series in a subquery into the statements for its servers.
var citusGrants = prefixed(runsOfKeys, describeGrantsBefore+`
  FROM unnest(r.question_ids) WITH ORDINALITY AS i (id, no) JOIN questions q ON q.id = i.id
  WHERE i.no BETWEEN (k.first - 1) / r.repetitions % cardinality(r.question_ids) + 1
    AND (k.last - 1) / r.repetitions % cardinality(r.question_ids) + 1) q`+describeGrantsAfter)

var citusLeases = prefixed(`job_leases AS MATERIALIZED (
  SELECT l.* FROM (SELECT DISTINCT account_id, run_id FROM unnest($1::uuid[], $2::uuid[]) AS key (account_id, run_id)) key
  JOIN job_leases l ON l.account_id = key.account_id AND l.run_id = key.run_id
  WHERE l.account_id = ANY ($1)
)`, readLeases)

var citusPasts = prefixed(runsOfKeys+fmt.Sprintf(tableOfJobs, "job_attempts")+fmt.Sprintf(tableOfJobs, "job_results"), readPastsSQL)

const tableOfJobs = `, %[1]s AS MATERIALIZED (
  SELECT t.* FROM (SELECT DISTINCT account_id, run_id, ordinal FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS key (account_id, run_id, ordinal)) key
  JOIN %[1]s t ON t.account_id = key.account_id AND t.run_id = key.run_id AND t.ordinal = key.ordinal
  WHERE t.account_id = ANY ($1)
)`

const citusExpired = `
SELECT account_id, run_id, ordinal, last_ordinal, attempt FROM job_leases WHERE state = 'held' AND until <= now() ORDER BY until LIMIT 200`

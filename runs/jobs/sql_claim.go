package jobs

import (
	"fmt"
	"strings"

	"aiv/auth"
	"aiv/store"
)

// EnqueueSQL hands runs to the dispatchers, in the transaction that writes them. It reads them from run (account_id, id).
const EnqueueSQL = `INSERT INTO job_arrivals (account_id, run_id) SELECT account_id, id FROM run`

// lockClaims serializes the transactions that hand out jobs, across all processes, so that turns and limits are exact. It returns
// the number of the transaction.
const lockClaims = `
SELECT ` + store.BoundIdle + `, pg_advisory_xact_lock(7019266183), nextval('job_turn_numbers')`

// readRevoked returns which of the workers $1 are revoked. It follows lockClaims, so that a claim that waited for the lock sees revocations
// since its start.
var readRevoked = `SELECT ` + auth.RevokedWorkersSQL("$1")

// openProviders are the providers among $1 (NULL: all) whose jobs can be claimed now, and how many of their jobs.
//
// Expired leases count as held until a sweep has ended them, because a renewal that began before may still commit.
const openProviders = `
clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
open AS MATERIALIZED (
  SELECT p.code, LEAST(
    s.per_minute - COALESCE((
      SELECT claimed FROM provider_minutes m WHERE m.provider_code = p.code AND m.minute = date_trunc('minute', clock.now, 'UTC')), 0),
    CASE WHEN s.in_flight IS NOT NULL THEN s.in_flight - (
      ` + heldJobs + `) END) AS capacity
  FROM clock CROSS JOIN providers p LEFT JOIN provider_settings s ON s.provider_code = p.code
  WHERE ($1::text[] IS NULL OR p.code = ANY ($1)) AND s.paused_at IS NULL
    AND NOT EXISTS (SELECT FROM provider_throttles t WHERE t.provider_code = p.code AND t.until > clock.now)
    AND 4 = (SELECT count(*) FROM provider_dependencies d WHERE d.provider_code = p.code AND d.met)
)`

// heldJobs is how many jobs of the provider p workers have.
const heldJobs = `SELECT COALESCE(sum(last_ordinal - ordinal + 1), 0) FROM job_leases l WHERE l.provider_code = p.code AND l.state = 'held'`

// readSupply returns one row for each span of jobs at the open providers: of the $2 accounts with the lowest turns, the oldest
// spans. Every open provider and each of those accounts has at least one row. The number of spans read of one account depends
// on how many accounts share $2 jobs. Of fresh spans it returns the oldest that together have more than $2 jobs, or all, so that the
// claims do not use up those that were returned while there are others. readSupplyOfAny is the same for claims of all providers.
var (
	readSupply      = fmt.Sprintf(readSupplyBy, "turn")
	readSupplyOfAny = fmt.Sprintf(readSupplyBy, "any_turn")
)

const readSupplyBy = `WITH ` + openProviders + `
SELECT clock.now, EXISTS (SELECT FROM job_arrivals) AS arrivals,
  EXISTS (SELECT FROM job_leases l WHERE l.state = 'waiting' AND l.until <= statement_timestamp()) AS due,
  open.code, open.capacity, t.account_id, t.codes, t.turns, t.any_turn, t.spans AS max_spans,
  j.fresh, j.run_id, j.run_created_at, j.model_no, j.first, j.last, j.attempt, j.tries, j.started_at
FROM clock LEFT JOIN open ON true
LEFT JOIN LATERAL (
  SELECT n.account_id, ` + minSpans + ` + $2::integer / count(*) OVER () AS spans, o.codes, o.turns, o.any_turn
  FROM (
    SELECT account_id FROM job_turns WHERE provider_code = open.code ORDER BY provider_code, %[1]s, account_id LIMIT $2::integer) n
  CROSS JOIN LATERAL (
    SELECT array_agg(provider_code) AS codes, array_agg(turn) AS turns, max(any_turn) AS any_turn FROM ` + turnsOf + `) o
) t ON open.capacity IS NULL OR open.capacity > 0
LEFT JOIN LATERAL (
  (SELECT true AS fresh, q.run_id, q.run_created_at, q.model_no, q.next_ordinal AS first, q.last_ordinal AS last,
     0::smallint AS attempt, 0::smallint AS tries, NULL::timestamptz AS started_at
   FROM (
     SELECT *, sum(last_ordinal - next_ordinal + 1) OVER (ORDER BY run_created_at, run_id, model_no ROWS UNBOUNDED PRECEDING) AS jobs
     FROM (
       SELECT * FROM job_queue WHERE provider_code = open.code AND account_id = t.account_id
       ORDER BY provider_code, account_id, run_created_at, run_id, model_no LIMIT t.spans) oldest) q
   WHERE q.jobs - (q.last_ordinal - q.next_ordinal + 1) <= $2::integer)
  UNION ALL
  (SELECT false, l.run_id, l.run_created_at, 0::smallint, l.ordinal, l.last_ordinal, l.attempt, l.tries, l.started_at
   FROM job_leases l WHERE l.state = 'ready' AND l.provider_code = open.code AND l.account_id = t.account_id
   ORDER BY l.provider_code, l.account_id, l.run_created_at, l.run_id, l.ordinal LIMIT t.spans)
) j ON true`

const minSpans = `8`

// claimable returns the open providers that have jobs to hand out, and whether runs or jobs wait to be admitted. It takes no
// lock.
const claimable = `WITH ` + openProviders + `
SELECT EXISTS (SELECT FROM job_arrivals) OR EXISTS (SELECT FROM job_leases l, clock WHERE l.state = 'waiting' AND l.until <= clock.now),
  ARRAY(SELECT code FROM open WHERE (capacity IS NULL OR capacity > 0) AND EXISTS (SELECT FROM job_turns t WHERE t.provider_code = open.code))`

// admitArrivals queues the jobs of runs that have arrived, with the turn $1 for accounts that have none, and removes those of
// runs that were canceled. Jobs that were claimed become canceled results, which keep their attempts. No other statement writes
// the leases or results of a canceled run.
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
  INSERT INTO job_turns (account_id, provider_code, turn, any_turn)
  SELECT account_id, provider_code, $1::bigint, ` + latestOfAny + ` FROM (SELECT DISTINCT account_id, provider_code FROM queued) n
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

// admitDue makes jobs ready that have waited long enough for another try.
const admitDue = `
WITH due AS MATERIALIZED (
  SELECT ctid AS tid FROM job_leases WHERE state = 'waiting' AND until <= (SELECT clock_timestamp()) ORDER BY until LIMIT 1000
), ready AS (
  UPDATE job_leases l SET state = 'ready' FROM due d WHERE l.ctid = d.tid
  RETURNING l.account_id, l.provider_code
)
INSERT INTO job_turns (account_id, provider_code, turn, any_turn)
SELECT account_id, provider_code, $1::bigint, ` + latestOfAny + ` FROM (SELECT DISTINCT account_id, provider_code FROM ready) n
ON CONFLICT DO NOTHING`

// latestOfAny is the any_turn of a new row of account n.
const latestOfAny = `COALESCE((SELECT any_turn FROM ` + turnsOf + ` LIMIT 1), $1::bigint)`

// turnsOf are the turns of account n; see rowOf.
const turnsOf = `(
  SELECT * FROM job_turns t WHERE t.account_id >= n.account_id AND t.account_id <= n.account_id ORDER BY t.account_id, t.provider_code) o`

// lockRuns locks runs in the order given, which is that of their keys, and returns them.
const lockRuns = `
SELECT r.account_id, r.id, r.status, r.total_jobs, r.total_jobs / cardinality(r.model_ids), r.jobs_returned, r.jobs_completed, r.jobs_failed
FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE ` + isRun + ` FOR NO KEY UPDATE) r`

// isRun selects the run of each key k, at the end of a subquery; see rowOf.
const isRun = `r.account_id = k.account_id AND r.id >= k.run_id AND r.id <= k.run_id ORDER BY r.account_id, r.id LIMIT 1`

// runOf finds the run of each key k, for a statement that changes it.
const runOf = `
CROSS JOIN LATERAL (SELECT ctid AS tid FROM measurement_runs r WHERE ` + isRun + `) found
WHERE `

// rowOf finds the rows of a table that have the given columns of each key k, for a statement that changes them.
//
// If a table was nearly empty when it was last vacuumed, the planner assumes that it is empty until the next vacuum or analyze. The
// plans of a session stay until then, too. A join with the keys may then read the whole table for each key, or an index that has the
// columns at its end.
//
// Neither can happen here. PostgreSQL does not flatten a subquery with ORDER BY, so it is evaluated for each key. Sorting and sequential
// scans are disabled (package store), so it reads the primary key, which is the only index in that order. The table is then read by
// ctid. The last column is compared as a range: the planner drops a column from the order that is compared for equality.
//
// The caller holds a lock that keeps other transactions from changing these rows. Without it a row that was updated would be left out.
func rowOf(table string, columns ...string) string {
	last := len(columns) - 1
	var where strings.Builder
	for _, c := range columns[:last] {
		where.WriteString("t." + c + " = k." + c + " AND ")
	}
	c := columns[last]
	return `
CROSS JOIN LATERAL (
  SELECT ctid AS tid FROM ` + table + ` t WHERE ` + where.String() + "t." + c + " >= k." + c + " AND t." + c + " <= k." + c + `
  ORDER BY t.` + strings.Join(columns, ", t.") + `) found`
}

// startRuns starts runs that are queued, and locks no others. It leaves out those that are canceled at the same time. A condition on the
// status would let the planner read all open runs.
const startRuns = startRunsOf + runOf + `r.ctid = found.tid` + isQueued

const (
	startRunsOf = `
UPDATE measurement_runs r SET status = 'running', started_at = $3 FROM unnest($1::uuid[], $2::uuid[]) AS k (account_id, run_id)`
	isQueued = ` AND r.started_at IS NULL AND r.finished_at IS NULL`
)

// takeReturned takes jobs from the returned jobs of runs that are not final. It follows lockRuns.
const takeReturned = takeReturnedOf + runOf + `r.ctid = found.tid AND r.finished_at IS NULL`

const takeReturnedOf = `
UPDATE measurement_runs r SET jobs_returned = r.jobs_returned - k.jobs
FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, jobs)`

const deleteLeasesOf = `
DELETE FROM job_leases l USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS k (account_id, run_id, ordinal)`

var leaseOf = rowOf("job_leases", "account_id", "run_id", "ordinal")

var deleteLeases = deleteLeasesOf + leaseOf + ` WHERE l.ctid = found.tid`

// deleteRunningLeases deletes leases of runs that are running, and returns their keys. It follows lockRuns.
var deleteRunningLeases = deleteLeasesOf + leaseOf + ofRunning + ` AND l.ctid = found.tid` + returningLeases

const returningLeases = ` RETURNING l.account_id, l.run_id, l.ordinal`

// ofRunning is about keys k of runs that are running.
const ofRunning = `
CROSS JOIN LATERAL (SELECT status FROM measurement_runs r WHERE ` + isRun + `) r
WHERE r.status = 'running'`

// putLeases writes leases of runs that are running.
const putLeases = `
INSERT INTO job_leases AS l (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until,
  started_at, worker_id)
SELECT k.* FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::text[], $6::timestamptz[], $7::text[], $8::smallint[],
  $9::smallint[], $10::timestamptz[], $11::timestamptz[], $12::uuid[]) AS k (account_id, run_id, ordinal, last_ordinal, provider_code,
  run_created_at, state, attempt, tries, until, started_at, worker_id)` + ofRunning + `
ON CONFLICT (account_id, run_id, ordinal) DO UPDATE SET last_ordinal = excluded.last_ordinal, state = excluded.state,
  attempt = excluded.attempt, tries = excluded.tries, until = excluded.until, worker_id = excluded.worker_id`

// advanceQueue and endQueue leave out rows that have changed since they were read, or were deleted because the run was canceled, and those
// of runs that startRuns has left out. advanceQueue locks rows in the order given, which is that of their keys. It returns those that it
// has not left out, with the next ordinal that was read.
var (
	advanceQueue = advanceQueueOf + queueRowOf + ofRunning + ` AND q.ctid = found.tid AND q.next_ordinal = k.was` + returningQueue
	endQueue     = endQueueOf + queueRowOf + ofRunning + ` AND q.ctid = found.tid AND q.next_ordinal = k.was`

	queueRowOf = rowOf("job_queue", "account_id", "run_id", "model_no")
)

const (
	returningQueue = ` RETURNING q.account_id, q.run_id, k.was`

	advanceQueueOf = `
UPDATE job_queue q SET next_ordinal = k.next
FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[], $5::integer[]) AS k (account_id, run_id, model_no, next, was)`

	endQueueOf = `
DELETE FROM job_queue q USING unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[]) AS k (account_id, run_id, model_no, was)`
)

var (
	setTurns = setTurnsOf + turnOf + ` WHERE t.ctid = found.tid`
	endTurns = endTurnsOf + turnOf + ` WHERE t.ctid = found.tid`

	turnOf = rowOf("job_turns", "provider_code", "account_id") // in the order of the provider, job_turns_next would serve as well
)

const (
	setTurnsOf = `
UPDATE job_turns t SET turn = k.turn, any_turn = k.any_turn
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) AS k (account_id, provider_code, turn, any_turn)`

	endTurnsOf = `
DELETE FROM job_turns t USING unnest($1::uuid[], $2::text[]) AS k (account_id, provider_code)`
)

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
CROSS JOIN LATERAL (` + questionsOfGrant + `
  FROM generate_series((k.first - 1) / r.repetitions % cardinality(r.question_ids) + 1, (k.last - 1) / r.repetitions % cardinality(r.question_ids) + 1) AS i (no)
  CROSS JOIN LATERAL (SELECT * FROM questions WHERE id = r.question_ids[i.no] OFFSET 0) q) q`

const questionsOfGrant = `
  SELECT min(i.no)::integer AS first, array_agg(q.id ORDER BY i.no) AS ids, array_agg(q.text ORDER BY i.no) AS texts,
    array_agg(q.language ORDER BY i.no) AS languages, array_agg(q.country ORDER BY i.no) AS countries`

package jobs

// openProviders returns the expressions of the providers among $1 (NULL: all) whose jobs can be claimed now, and how many
// of their jobs. held is a query for the number of jobs of provider p that workers have.
func openProviders(held string) string {
	return `
clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
open AS MATERIALIZED (
  SELECT p.code, LEAST(
    s.per_minute - COALESCE((
      SELECT claimed FROM provider_minutes m WHERE m.provider_code = p.code AND m.minute = date_trunc('minute', clock.now, 'UTC')), 0),
    CASE WHEN s.in_flight IS NOT NULL THEN s.in_flight - (` + held + `) END) AS capacity
  FROM clock CROSS JOIN providers p LEFT JOIN provider_settings s ON s.provider_code = p.code
  WHERE ($1::text[] IS NULL OR p.code = ANY ($1)) AND NOT EXISTS (SELECT FROM provider_pauses x WHERE x.provider_code = p.code)
    AND NOT EXISTS (SELECT FROM provider_throttles t WHERE t.provider_code = p.code AND t.until > clock.now)
    AND 4 = (SELECT count(*) FROM provider_dependencies d WHERE d.provider_code = p.code AND d.met)
)`
}

// heldLeases counts expired leases until a sweep ends them, because a renewal that began before the end may still commit.
const heldLeases = `
      SELECT COALESCE(sum(last_ordinal - ordinal + 1), 0) FROM job_leases l WHERE l.provider_code = p.code AND l.state = 'held'`

// readSupply returns one row for each span of jobs at the open providers: the oldest spans of the $2 accounts with the
// lowest turns. Every open provider and each of those accounts has at least one row. How many spans of an account are
// read depends on how many accounts share $2 jobs. Of the fresh spans, the oldest are read until they have more than $2
// jobs together, so that claims cannot use up the fresh spans that were read while the account has more.
var readSupply = `WITH ` + openProviders(heldLeases) + supplyOfOpen

const supplyOfOpen = `
SELECT clock.now, EXISTS (SELECT FROM job_arrivals) AS arrivals,
  EXISTS (SELECT FROM job_leases l WHERE l.state = 'waiting' AND l.until <= statement_timestamp()) AS due,
  open.code, open.capacity, t.account_id, t.codes, t.turns, t.spans AS max_spans,
  j.fresh, j.run_id, j.run_created_at, j.model_no, j.first, j.last, j.attempt, j.tries, j.started_at
FROM clock LEFT JOIN open ON true
LEFT JOIN LATERAL (
  SELECT n.account_id, 8 + $2::integer / count(*) OVER () AS spans, o.codes, o.turns
  FROM (
    SELECT account_id FROM job_turns WHERE provider_code = open.code ORDER BY provider_code, turn, account_id LIMIT $2::integer) n
  CROSS JOIN LATERAL (
    SELECT array_agg(provider_code) AS codes, array_agg(turn) AS turns FROM ` + turnsOf + `) o
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

// claimable returns the open providers that have jobs to hand out, and whether runs or jobs wait to be admitted. It
// takes no lock. Without OFFSET 0, a plan for few turns would read all turns into a hash table.
var claimable = `WITH ` + openProviders(heldLeases) + claimableOfOpen + ` OFFSET 0))`

const claimableOfOpen = `
SELECT EXISTS (SELECT FROM job_arrivals) OR EXISTS (SELECT FROM job_leases l, clock WHERE l.state = 'waiting' AND l.until <= clock.now),
  ARRAY(SELECT code FROM open WHERE (capacity IS NULL OR capacity > 0) AND EXISTS (SELECT FROM job_turns t WHERE t.provider_code = open.code`

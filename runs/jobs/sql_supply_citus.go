package jobs

import "aiv/store"

// citusSupply and citusClaimable are readSupply and claimable on Citus. They first read the rows of the distributed
// tables that they may need, of the accounts in the last parameter, in common table expressions named like the tables.
// The rest is as on plain PostgreSQL, except for held leases: a transaction may be committed on the coordinator but not
// yet on the servers of its accounts, where its leases are invisible until then. So held leases are counted in
// job_holds, which is on the coordinator.
var citusSupply = `
WITH
job_arrivals AS MATERIALIZED (SELECT run_id FROM job_arrivals WHERE ` + store.AmongAccounts("account_id", "$3") + ` LIMIT 1),
job_turns AS MATERIALIZED (
  SELECT account_id, provider_code, turn FROM job_turns WHERE ` + store.AmongAccounts("account_id", "$3") + `),
job_leases AS MATERIALIZED (
  SELECT * FROM job_leases WHERE ` + store.AmongAccounts("account_id", "$3") + `
    AND (state = 'ready' OR state = 'waiting' AND until <= now())
),
job_queue AS MATERIALIZED (
  SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY account_id, provider_code ORDER BY run_created_at, run_id, model_no) AS no
    FROM job_queue WHERE ` + store.AmongAccounts("account_id", "$3") + `) q
  WHERE no <= 8 + $2::integer
),
clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
open AS MATERIALIZED (
  SELECT p.code, LEAST(
    s.per_minute - COALESCE((
      SELECT claimed FROM provider_minutes m WHERE m.provider_code = p.code AND m.minute = date_trunc('minute', clock.now, 'UTC')), 0),
    CASE WHEN s.in_flight IS NOT NULL THEN s.in_flight - (
      SELECT COALESCE(sum(jobs), 0) FROM job_holds h WHERE h.provider_code = p.code) END) AS capacity
  FROM clock CROSS JOIN providers p LEFT JOIN provider_settings s ON s.provider_code = p.code
  WHERE ($1::text[] IS NULL OR p.code = ANY ($1)) AND NOT EXISTS (SELECT FROM provider_pauses x WHERE x.provider_code = p.code)
    AND NOT EXISTS (SELECT FROM provider_throttles t WHERE t.provider_code = p.code AND t.until > clock.now)
    AND 4 = (SELECT count(*) FROM provider_dependencies d WHERE d.provider_code = p.code AND d.met)
)
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
    SELECT array_agg(provider_code) AS codes, array_agg(turn) AS turns FROM (
  SELECT * FROM job_turns t WHERE t.account_id >= n.account_id AND t.account_id <= n.account_id ORDER BY t.account_id, t.provider_code) o) o
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

var citusClaimable = `
WITH
job_arrivals AS MATERIALIZED (SELECT run_id FROM job_arrivals WHERE ` + store.AmongAccounts("account_id", "$2") + ` LIMIT 1),
job_turns AS MATERIALIZED (
  SELECT account_id, provider_code, turn FROM job_turns WHERE ` + store.AmongAccounts("account_id", "$2") + `),
job_leases AS MATERIALIZED (
  SELECT * FROM job_leases WHERE ` + store.AmongAccounts("account_id", "$2") + `
    AND (state = 'ready' OR state = 'waiting' AND until <= now())
),
clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
open AS MATERIALIZED (
  SELECT p.code, LEAST(
    s.per_minute - COALESCE((
      SELECT claimed FROM provider_minutes m WHERE m.provider_code = p.code AND m.minute = date_trunc('minute', clock.now, 'UTC')), 0),
    CASE WHEN s.in_flight IS NOT NULL THEN s.in_flight - (
      SELECT COALESCE(sum(jobs), 0) FROM job_holds h WHERE h.provider_code = p.code) END) AS capacity
  FROM clock CROSS JOIN providers p LEFT JOIN provider_settings s ON s.provider_code = p.code
  WHERE ($1::text[] IS NULL OR p.code = ANY ($1)) AND NOT EXISTS (SELECT FROM provider_pauses x WHERE x.provider_code = p.code)
    AND NOT EXISTS (SELECT FROM provider_throttles t WHERE t.provider_code = p.code AND t.until > clock.now)
    AND 4 = (SELECT count(*) FROM provider_dependencies d WHERE d.provider_code = p.code AND d.met)
)
SELECT EXISTS (SELECT FROM job_arrivals) OR EXISTS (SELECT FROM job_leases l, clock WHERE l.state = 'waiting' AND l.until <= clock.now),
  ARRAY(SELECT code FROM open WHERE (capacity IS NULL OR capacity > 0) AND EXISTS (SELECT FROM job_turns t WHERE t.provider_code = open.code))`

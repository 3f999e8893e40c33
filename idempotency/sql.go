package idempotency

// Claimed is a common table expression over the rows of requested (account_id, method, route, key, request_hash,
// run_id, answer): it claims their keys and returns account_id and run_id of the keys that were free. The column answer
// has the response.
//
// The statement waits for a key that another transaction is claiming: the key is taken if that transaction commits, and
// free otherwise. Keys are claimed in order, so that the statements of two processes cannot deadlock.
const Claimed = `
claimed AS (
  INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
  SELECT account_id, method, route, key, request_hash, run_id, answer FROM requested
  ORDER BY account_id, method, route, key
  ON CONFLICT DO NOTHING
  RETURNING account_id, run_id
)`

// ClaimOnCitus builds its statement from these. claimRow is a row of its VALUES.
const (
	claim    = `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer) VALUES `
	claimRow = `$::uuid, $, $, $, $::bytea, $::uuid, $::bytea`
	claimEnd = ` ON CONFLICT DO NOTHING RETURNING run_id`
)

const load = `
SELECT request_hash, run_id, answer FROM idempotency_records
WHERE account_id = $1 AND method = $2 AND route = $3 AND key = $4`

// purgeEnd is the creation time of the $2-th oldest of the records created before $1.
const purgeEnd = `
SELECT created_at FROM idempotency_records WHERE created_at < $1 ORDER BY created_at OFFSET $2 - 1 LIMIT 1`

const purge = `DELETE FROM idempotency_records WHERE created_at <= $1`

// forget finds the records by the index on created_at, which equals created_at of their runs. No index serves IS NOT DISTINCT
// FROM, so the planner cannot use the primary key, which would read the whole account.
const forget = `
DELETE FROM idempotency_records i USING unnest($2::uuid[], $3::timestamptz[]) AS r (id, created_at)
WHERE i.account_id IS NOT DISTINCT FROM $1 AND i.run_id = r.id AND i.created_at = r.created_at`

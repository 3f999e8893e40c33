package idempotency

// Claimed is a common table expression over the rows of requested (account_id, method, route, key, request_hash, run_id,
// answer): it claims their keys and returns account_id and run_id of those that were free.
//
// A key that another transaction is claiming is waited for: once that one has committed, the key is taken; if it rolled
// back, it is free. Keys are claimed in one order, so that the statements of two processes can't deadlock.
const Claimed = `
claimed AS (
  INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
  SELECT account_id, method, route, key, request_hash, run_id, answer FROM requested
  ORDER BY account_id, method, route, key
  ON CONFLICT DO NOTHING
  RETURNING account_id, run_id
)`

const load = `
SELECT request_hash, run_id, answer FROM idempotency_records
WHERE account_id = $1 AND method = $2 AND route = $3 AND key = $4`

const purge = `
DELETE FROM idempotency_records WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM idempotency_records WHERE created_at < now() - $1::interval ORDER BY created_at LIMIT $2
  FOR UPDATE SKIP LOCKED))`

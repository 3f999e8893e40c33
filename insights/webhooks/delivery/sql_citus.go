package delivery

import "aiv/store"

// citusDue is readDue on Citus, which cannot read the first rows of each of several accounts.
const citusDue = `WITH webhook_deliveries AS MATERIALIZED (
  SELECT * FROM (
    SELECT d.*, w.most, row_number() OVER (PARTITION BY d.account_id, d.endpoint_id ORDER BY d.next_attempt_at, d.event_id) AS no
    FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::int[]) AS w (account_id, endpoint_id, after_time, after_id, most)
    JOIN webhook_deliveries d ON d.account_id = w.account_id AND d.endpoint_id = w.endpoint_id AND d.status = 'pending'
      AND (d.next_attempt_at, d.event_id) > (w.after_time, w.after_id)
    WHERE d.account_id = ANY ($1)) d
  WHERE no <= most)
` + readDue

// citusEvents is readEvents on Citus.
const citusEvents = readEventsOf + ` JOIN events v ON v.account_id = w.account_id AND v.id = w.id`

// citusLockDeliveries locks nothing: citusWriteOutcomes finds rows by their keys.
const citusLockDeliveries = `SELECT $1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::int[]`

// citusWriteOutcomes is writeOutcomes on Citus. IS NOT DISTINCT FROM leaves the planner no index but the primary
// key's.
const citusWriteOutcomes = writeOutcomesOf + `
WHERE d.account_id = o.account_id AND d.event_id = o.event_id AND d.endpoint_id IS NOT DISTINCT FROM o.endpoint_id
  AND d.status IS NOT DISTINCT FROM 'pending' AND d.resends = o.resends AND d.attempts = o.attempts`

// citusDueAccounts is dueAccounts on Citus, for accounts on reachable servers only.
var citusDueAccounts = `
SELECT account_id FROM webhook_queues WHERE wake_at <= now() AND ` + store.AmongAccounts("account_id", "$2") + ` ORDER BY wake_at LIMIT $1`

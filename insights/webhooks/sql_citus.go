package webhooks

const (
	// citusLockQueue is lockQueues for one account.
	citusLockQueue = `SELECT FROM webhook_queues WHERE account_id = $1 FOR NO KEY UPDATE`

	citusEndpoints = `
SELECT account_id, id, events FROM webhook_endpoints WHERE account_id = ANY ($1) AND deleted_at IS NULL AND disabled_reason IS NULL`

	// citusAddDeliveries adds deliveries that the program has matched with endpoints itself.
	citusAddDeliveries = `
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, created_at)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[])`

	// citusWakeQueues is the last part of recordEvents.
	citusWakeQueues = `
INSERT INTO webhook_queues AS q (account_id, wake_at)
SELECT account_id, (SELECT clock_timestamp()) FROM unnest($1::uuid[]) AS k (account_id)` + wakeQueues
)

// citusBacklog is readBacklog on Citus, which cannot read the first row of each of several endpoints.
const citusBacklog = `
WITH pending AS MATERIALIZED (
  SELECT account_id, endpoint_id FROM webhook_deliveries WHERE status = 'pending' LIMIT $2
), gone AS MATERIALIZED (
  SELECT account_id, id FROM webhook_endpoints WHERE deleted_at IS NOT NULL
), queue AS MATERIALIZED (
  SELECT account_id FROM webhook_queues WHERE wake_at < 'infinity' ORDER BY wake_at LIMIT $1
), first AS MATERIALIZED (
  SELECT e.account_id, (
    SELECT min(next_attempt_at) FROM webhook_deliveries d WHERE d.account_id = e.account_id AND d.endpoint_id = e.id AND d.status = 'pending') AS next_attempt_at
  FROM webhook_endpoints e
  WHERE e.account_id IN (SELECT account_id FROM queue) AND e.deleted_at IS NULL AND e.disabled_reason IS NULL
)
SELECT (SELECT count(*) FROM pending d WHERE NOT EXISTS (SELECT FROM gone e WHERE e.account_id = d.account_id AND e.id = d.endpoint_id)), COALESCE((
  SELECT extract(epoch FROM now() - min(next_attempt_at)) FROM first
), 0)::double precision`

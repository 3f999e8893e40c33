package webhooks

const (
	citusLockQueue = `SELECT FROM webhook_queues WHERE account_id = $1 FOR NO KEY UPDATE`

	citusAddEvents = `
INSERT INTO events (account_id, id, type, subject_id, data, created_at)
SELECT account_id, id, type, subject_id, data::json, clock_timestamp()
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[]) AS c (account_id, id, type, subject_id, data)
ON CONFLICT DO NOTHING
RETURNING account_id, id`

	citusAddDeliveries = `
INSERT INTO webhook_deliveries AS d (account_id, event_id, endpoint_id, created_at)
SELECT v.account_id, v.id, e.id, v.created_at
FROM unnest($1::uuid[], $2::uuid[]) AS c (account_id, id)
JOIN events v ON v.account_id = c.account_id AND v.id = c.id
JOIN webhook_endpoints e ON e.account_id = v.account_id AND e.deleted_at IS NULL AND e.disabled_reason IS NULL
  AND (v.type = ANY (e.events) OR e.events = '{*}')
WHERE v.account_id = ANY ($1)
RETURNING d.account_id`

	citusWakeQueues = `
INSERT INTO webhook_queues AS q (account_id, wake_at) SELECT account_id, now() FROM unnest($1::uuid[]) AS k (account_id)` + wakeQueues
)

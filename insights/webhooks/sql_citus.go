package webhooks

const (
	citusLockQueue = `SELECT FROM webhook_queues WHERE account_id = $1 FOR NO KEY UPDATE`

	citusEndpoints = `
SELECT account_id, id, events FROM webhook_endpoints WHERE account_id = ANY ($1) AND deleted_at IS NULL AND disabled_reason IS NULL`

	citusAddDeliveries = `
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, created_at)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[])`

	citusWakeQueues = `
INSERT INTO webhook_queues AS q (account_id, wake_at) SELECT account_id, now() FROM unnest($1::uuid[]) AS k (account_id)` + wakeQueues
)

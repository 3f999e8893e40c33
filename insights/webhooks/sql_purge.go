package webhooks

const (
	oldEvents = `
SELECT account_id, id FROM events WHERE created_at < $1 ORDER BY created_at LIMIT $2`

	// deleteEvents deletes their deliveries with them.
	deleteEvents = `
DELETE FROM events v USING unnest($1::uuid[], $2::uuid[]) AS o (account_id, id) WHERE v.account_id = o.account_id AND v.id = o.id`

	deletedEndpoints = `
SELECT account_id, id, deleted_at, deleted_at < now() - interval '1 hour' FROM webhook_endpoints
WHERE deleted_at IS NOT NULL AND (deleted_at, id) > ($1, $2) ORDER BY deleted_at, id LIMIT $3`

	deliveriesOfEndpoint = `SELECT event_id FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 LIMIT $3`

	deleteDeliveries = `
DELETE FROM webhook_deliveries WHERE account_id = $1 AND event_id = ANY ($3) AND endpoint_id IS NOT DISTINCT FROM $2`

	removeEndpoint = `DELETE FROM webhook_endpoints WHERE account_id = $1 AND id = $2 AND deleted_at IS NOT NULL`

	deleteHosts = `DELETE FROM webhook_hosts WHERE second < now() - interval '1 hour'`

	hideEndpoints = `
UPDATE webhook_endpoints SET deleted_at = now(), slot = NULL WHERE account_id = $1 AND deleted_at IS NULL`

	// eraseEvents deletes their deliveries with them.
	eraseEvents = `
DELETE FROM events WHERE account_id = $1 AND id = ANY (ARRAY(SELECT id FROM events WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`

	eraseQueue     = `DELETE FROM webhook_queues WHERE account_id = $1`
	eraseEndpoints = `DELETE FROM webhook_endpoints WHERE account_id = $1 AND deleted_at IS NOT NULL`
)

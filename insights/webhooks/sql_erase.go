package webhooks

const (
	hideEndpoints = `
UPDATE webhook_endpoints SET deleted_at = now(), slot = NULL WHERE account_id = $1 AND deleted_at IS NULL`

	// eraseEvents deletes their deliveries with them.
	eraseEvents = `
DELETE FROM events WHERE account_id = $1 AND id = ANY (ARRAY(SELECT id FROM events WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`

	eraseQueue     = `DELETE FROM webhook_queues WHERE account_id = $1`
	eraseEndpoints = `DELETE FROM webhook_endpoints WHERE account_id = $1 AND deleted_at IS NOT NULL`
)

package webhooks

const (
	oldEvents = `
SELECT account_id, id FROM events WHERE created_at < $1 ORDER BY created_at LIMIT $2`

	// deleteEvents deletes their deliveries with them. See eventOf for the form of the subquery. No event is updated, so that its ctid
	// stays the same.
	deleteEvents = `
DELETE FROM events e USING unnest($1::uuid[], $2::uuid[]) AS o (account_id, id)
CROSS JOIN LATERAL (
  SELECT ctid AS tid FROM events v WHERE v.account_id = o.account_id AND v.id >= o.id AND v.id <= o.id ORDER BY v.account_id, v.id) found
WHERE e.ctid = found.tid`

	// citusDeleteEvents is deleteEvents on Citus.
	citusDeleteEvents = `
DELETE FROM events v USING unnest($1::uuid[], $2::uuid[]) AS o (account_id, id)
WHERE v.account_id = o.account_id AND v.id = o.id AND v.account_id = ANY ($1)`

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

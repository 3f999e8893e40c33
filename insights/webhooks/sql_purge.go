package webhooks

const (
	deletedEndpoints = `
SELECT account_id, id, deleted_at < now() - interval '1 hour' FROM webhook_endpoints WHERE deleted_at IS NOT NULL`

	// deleteDeliveries finds the rows that it deletes by the primary key, because IS NOT DISTINCT FROM leaves no other
	// index.
	deleteDeliveries = `
DELETE FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id IS NOT DISTINCT FROM $2 AND event_id = ANY (
  ARRAY(SELECT event_id FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 ORDER BY created_at, event_id LIMIT $3))`

	// removeEndpoint leaves the endpoint to the next purge if a concurrent one has made deleteDeliveries end early.
	removeEndpoint = `
DELETE FROM webhook_endpoints WHERE account_id = $1 AND id = $2
  AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2)`

	deleteHosts = `DELETE FROM webhook_hosts WHERE second < now() - interval '1 hour'`

	hideEndpoints = `
UPDATE webhook_endpoints SET deleted_at = now(), slot = NULL WHERE account_id = $1 AND deleted_at IS NULL`
)

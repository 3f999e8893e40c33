package webhooks

const (
	// oldEvents returns old events in the order of their keys, in which concurrent purges lock them.
	oldEvents = `
WITH old AS MATERIALIZED (
  SELECT account_id, id FROM (SELECT account_id, id FROM events WHERE created_at < $1 ORDER BY created_at LIMIT $2) o ORDER BY account_id, id)`

	// deleteEvents deletes their deliveries with them. See eventOf for the form of the subquery. No event is updated, so that its ctid
	// stays the same.
	deleteEvents = oldEvents + `
DELETE FROM events e USING old o
CROSS JOIN LATERAL (
  SELECT ctid AS tid FROM events v WHERE v.account_id = o.account_id AND v.id >= o.id AND v.id <= o.id ORDER BY v.account_id, v.id) found
WHERE e.ctid = found.tid`

	// citusDeleteEvents is deleteEvents on Citus.
	citusDeleteEvents = oldEvents + `
DELETE FROM events v USING old o WHERE v.account_id = o.account_id AND v.id = o.id`

	deletedEndpoints = `
SELECT account_id, id, deleted_at < now() - interval '1 hour' FROM webhook_endpoints WHERE deleted_at IS NOT NULL`

	// deleteDeliveries finds the rows that it deletes by the primary key, because IS NOT DISTINCT FROM leaves no other index.
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

package webhooks

const (
	// readBacklog reads at most $1 accounts and $2 deliveries, so that its cost has a bound. The deliveries of deleted
	// endpoints are not counted, so that the number is too low for some minutes after an endpoint with more than $2 of
	// them was deleted.
	readBacklog = `
SELECT (SELECT count(*) FROM (SELECT account_id, endpoint_id FROM webhook_deliveries WHERE status = 'pending' LIMIT $2) d WHERE ` + notDeleted + `),
  COALESCE((
    SELECT extract(epoch FROM now() - min(d.next_attempt_at))
    FROM (SELECT account_id FROM webhook_queues WHERE wake_at < 'infinity' ORDER BY wake_at LIMIT $1) q
    CROSS JOIN LATERAL (
      SELECT min(first.next_attempt_at) AS next_attempt_at
      FROM webhook_endpoints e CROSS JOIN LATERAL (
        SELECT next_attempt_at FROM webhook_deliveries d
        WHERE d.account_id = e.account_id AND d.endpoint_id = e.id AND d.status = 'pending'
        ORDER BY d.next_attempt_at, d.event_id LIMIT 1) first
      WHERE e.account_id = q.account_id AND e.deleted_at IS NULL AND e.disabled_reason IS NULL) d
  ), 0)::double precision`

	notDeleted = `NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.account_id = d.account_id AND e.id = d.endpoint_id AND e.deleted_at IS NOT NULL OFFSET 0)`
)

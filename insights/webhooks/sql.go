package webhooks

import "aiv/insights/events"

const (
	endpointColumns = `id, url, description, events, disabled_reason, created_at, updated_at`

	getEndpoint = `SELECT ` + endpointColumns + ` FROM webhook_endpoints WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

	listEndpoints = `SELECT ` + endpointColumns + ` FROM webhook_endpoints`

	// lockAccount makes changes of an account's endpoints wait for each other. The row is locked before the next
	// statement takes its snapshot.
	lockAccount = `
INSERT INTO webhook_queues AS q (account_id) VALUES ($1)
ON CONFLICT (account_id) DO UPDATE SET version = q.version + 1`

	// readSlots reads the slots and URLs of endpoints that are not deleted.
	readSlots = `SELECT slot, url FROM webhook_endpoints WHERE account_id = $1 AND deleted_at IS NULL`

	insertEndpoint = `
INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING ` + endpointColumns

	// lockEndpoint does not block the foreign keys of new deliveries to the row.
	lockEndpoint = getEndpoint + ` FOR NO KEY UPDATE`

	// updateEndpoint changes an endpoint that is locked.
	updateEndpoint = `
UPDATE webhook_endpoints
SET url = $3, description = $4, events = $5, disabled_reason = $6, failing_since = CASE WHEN $7 THEN NULL ELSE failing_since END,
  updated_at = now()
WHERE account_id = $1 AND id = $2
RETURNING ` + endpointColumns

	// deleteEndpoint frees the slot at once. The row itself stays for a while.
	deleteEndpoint = `
UPDATE webhook_endpoints SET deleted_at = now(), slot = NULL WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

	// rotateSecret keeps the version before valid until previous_until. Another rotation before that ends it.
	rotateSecret = `
UPDATE webhook_endpoints
SET secret_version = secret_version + 1, previous_until = now() + $3::double precision * interval '1 second', updated_at = now()
WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL
RETURNING ` + endpointColumns + `, secret_version`

	// wakeQueue makes the account due. The new version keeps a process that owns the account from releasing it.
	wakeQueue = `
INSERT INTO webhook_queues AS q (account_id, wake_at) VALUES ($1, now())` + wakeQueues

	// lockQueues locks the queues of the accounts that have ever had an endpoint, enabled or not.
	lockQueues = `SELECT FROM webhook_queues WHERE account_id = ANY ($1) ORDER BY account_id FOR NO KEY UPDATE`

	// recordEvents wakes queues that lockQueues has locked. The order is for queues of accounts that got their first
	// endpoint since then. The transaction may have begun long ago, so now() may precede the lease of an owner by any time.
	recordEvents = `
WITH ` + events.Recorded + `, queued AS (` + addDeliveries + `
  RETURNING account_id
)
INSERT INTO webhook_queues AS q (account_id, wake_at)
SELECT DISTINCT account_id, (SELECT clock_timestamp()) FROM queued ORDER BY account_id` + wakeQueues

	// recordWithoutQueues is recordEvents without the queues.
	recordWithoutQueues = `
WITH ` + events.Recorded + addDeliveries

	// addDeliveries adds the deliveries of added, the events that were written.
	addDeliveries = `
  INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, created_at)
  SELECT a.account_id, a.id, e.id, a.created_at
  FROM added a
  JOIN webhook_endpoints e ON e.account_id = a.account_id AND e.deleted_at IS NULL AND e.disabled_reason IS NULL
    AND (a.type = ANY (e.events) OR e.events = '{*}')`

	// subscribed are the enabled endpoints of accounts. Each change of one changes updated_at.
	subscribed = `
SELECT account_id, id, updated_at FROM webhook_endpoints
WHERE account_id = ANY ($1) AND deleted_at IS NULL AND disabled_reason IS NULL ORDER BY account_id, id`

	// wakeLocked wakes queues that lockQueues has locked.
	wakeLocked = `
INSERT INTO webhook_queues AS q (account_id, wake_at)
SELECT k.account_id, (SELECT clock_timestamp()) FROM unnest($1::uuid[]) AS k (account_id) ORDER BY k.account_id` + wakeQueues

	// wakeQueues leaves the lease of an owner. A lease lasts less than a minute, and a transaction that wakes a queue at
	// its now() less than another. A lease that ends later is from a time when the database's clock was ahead; its
	// process may have ended.
	wakeQueues = `
ON CONFLICT (account_id) DO UPDATE SET version = q.version + 1,
  wake_at = CASE WHEN q.owner IS NULL THEN LEAST(q.wake_at, excluded.wake_at)
    WHEN q.wake_at - excluded.wake_at > '2 minutes' THEN excluded.wake_at ELSE q.wake_at END`

	// countHost counts a test or a resend to a host name. It returns no row if the second already has the maximum.
	countHost = `
INSERT INTO webhook_hosts AS h (host, second, requested) VALUES ($1, date_trunc('second', now()), 1)
ON CONFLICT (host) DO UPDATE
SET second = CASE WHEN ` + sameSecond + ` THEN h.second ELSE excluded.second END, requested = CASE WHEN ` + sameSecond + ` THEN h.requested + 1 ELSE 1 END
WHERE NOT ` + sameSecond + ` OR h.requested < $2
RETURNING requested`

	// sameSecond counts a request in the second of the row, even if that is later, as after a concurrent transaction
	// that began later. No transaction waits for 30 s, so a second that is further ahead is from a time when the
	// database's clock was ahead.
	sameSecond = `(h.second - excluded.second BETWEEN '0' AND '30 seconds')`

	// countRequested counts the pending tests and resends of an endpoint without the resends of one event.
	countRequested = `
SELECT count(*), COALESCE(extract(epoch FROM min(next_attempt_at) - now()), 0)::double precision
FROM webhook_deliveries
WHERE account_id = $1 AND endpoint_id = $2 AND requested AND status = 'pending' AND event_id <> $3`

	readMasterFingerprint = `SELECT fingerprint FROM webhook_master`

	insertMaster = `INSERT INTO webhook_master (fingerprint) VALUES ($1) ON CONFLICT DO NOTHING`
)

var (
	// listDeliveries lists the deliveries of the account $1.
	listDeliveries = `
SELECT event_id, (SELECT type FROM (` + events.SelectSQL("$1", "d.event_id") + `) v) AS type,
  status, attempts, last_status, last_error, next_attempt_at, created_at, delivered_at
FROM webhook_deliveries d`

	// readPendingTypes counts at most $3 pending deliveries of an endpoint by the types of their events.
	readPendingTypes = `
SELECT type, count(*)
FROM (
  SELECT (SELECT type FROM (` + events.SelectSQL("$1", "d.event_id") + `) v) AS type
  FROM (
    SELECT event_id FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 AND status = 'pending'
    ORDER BY next_attempt_at, event_id LIMIT $3) d) typed
GROUP BY type`

	// requestDelivery adds a delivery of an event, or makes a delivery that exists pending again with no attempts.
	requestDelivery = `
WITH d AS (INSERT INTO webhook_deliveries AS d (account_id, event_id, endpoint_id, requested) VALUES ($1, $2, $3, true)
ON CONFLICT (account_id, event_id, endpoint_id) DO UPDATE SET
  status = 'pending', requested = true, resends = d.resends + 1, attempts = 0, last_status = NULL, last_error = NULL,
  next_attempt_at = excluded.next_attempt_at, delivered_at = NULL
RETURNING d.*)
SELECT d.event_id, v.type, d.status, d.attempts, d.last_status, d.last_error, d.next_attempt_at, d.created_at, d.delivered_at
FROM d, (` + events.SelectSQL("$1", "$2") + `) v`
)

const (
	listAllEndpoints = `
SELECT account_id, ` + endpointColumns + `, failing_since FROM webhook_endpoints
WHERE deleted_at IS NULL AND ($1::uuid IS NULL OR account_id = $1) ORDER BY account_id, created_at, id`

	// accountOfEndpoint finds the account of an endpoint; ids are unique among all accounts.
	accountOfEndpoint = `SELECT account_id FROM webhook_endpoints WHERE id = $1`

	// setDisabledReason changes an endpoint that is locked.
	setDisabledReason = `
UPDATE webhook_endpoints SET disabled_reason = $3, failing_since = NULL, updated_at = now()
WHERE account_id = $1 AND id = $2
RETURNING account_id, ` + endpointColumns + `, failing_since`
)

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

const (
	// deletedEndpoints also returns whether the deletion is so long ago that no transaction from before it still
	// runs.
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

	// hideEndpoints is deleteEndpoint for all endpoints of an account.
	hideEndpoints = `
UPDATE webhook_endpoints SET deleted_at = now(), slot = NULL WHERE account_id = $1 AND deleted_at IS NULL`
)

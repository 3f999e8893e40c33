package delivery

const (
	// dueAccounts reads candidates without locks; claimAccounts claims those that no other process has claimed since.
	dueAccounts = `SELECT account_id FROM webhook_queues WHERE wake_at <= now() ORDER BY wake_at LIMIT $1`

	// updateQueues completes the following statements. They change the rows q of accounts $1.

	claimAccounts = `
UPDATE webhook_queues q SET owner = $2, wake_at = now() + $3::double precision * interval '1 second'
WHERE q.wake_at <= now()`

	renewAccounts = `
UPDATE webhook_queues q SET wake_at = now() + $3::double precision * interval '1 second'
WHERE q.owner = $2`

	// releaseAccounts releases accounts in which nothing is due before a time. It leaves out accounts whose version has
	// changed since the process read their due deliveries.
	releaseAccounts = `
UPDATE webhook_queues q SET owner = NULL, wake_at = r.wake_at
FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[]) AS r (account_id, version, wake_at)
WHERE q.account_id = r.account_id AND q.owner = $4 AND q.version = r.version`

	// yieldAccounts releases accounts that may have due deliveries. They are claimed after those that have waited
	// longer.
	yieldAccounts = `UPDATE webhook_queues q SET owner = NULL, wake_at = now() WHERE q.owner = $2`

	// ofUnlocked skips rows that another transaction has locked, so that a statement does not wait for the transactions
	// that record events, some of which take long. SKIP LOCKED never waits, so the order of locks does not matter.
	ofUnlocked = ` AND q.account_id = ANY (ARRAY(
  SELECT account_id FROM webhook_queues WHERE account_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED))` + returningAccount

	returningAccount = ` RETURNING q.account_id`

	// readAccounts reads the enabled endpoints of owned accounts; an account without one has a row with a null
	// endpoint.
	readAccounts = `
SELECT q.account_id, q.version, e.id, e.url, e.secret_version, (e.previous_until > now()) IS TRUE AS rotating,
  e.failing_since IS NOT NULL AS failing
FROM webhook_queues q
LEFT JOIN webhook_endpoints e ON e.account_id = q.account_id AND e.deleted_at IS NULL AND e.disabled_reason IS NULL
WHERE q.account_id = ANY ($1) AND q.owner = $2`

	// readDue reads, for each endpoint, its first pending deliveries after a position, whether due or not.
	readDue = `
SELECT w.i, d.event_id, d.resends, d.attempts, d.next_attempt_at, d.next_attempt_at <= now() AS due
FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::int[]) WITH ORDINALITY
  AS w (account_id, endpoint_id, after_time, after_id, most, i)
CROSS JOIN LATERAL (
  SELECT event_id, resends, attempts, next_attempt_at
  FROM webhook_deliveries d
  WHERE d.account_id = w.account_id AND d.endpoint_id = w.endpoint_id AND d.status = 'pending'
    AND (d.next_attempt_at, d.event_id) > (w.after_time, w.after_id)
  ORDER BY d.next_attempt_at, d.event_id LIMIT w.most) d`

	readEventsOf = `
SELECT w.i, v.type, v.created_at, v.data
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (account_id, id, i)`

	// readEvents returns the events of keys w that exist. See SelectSQL of package events for the form of the subquery.
	readEvents = readEventsOf + ` CROSS JOIN LATERAL (SELECT * FROM events v WHERE v.account_id = w.account_id AND v.id >= w.id AND v.id <= w.id ORDER BY v.account_id, v.id) v`

	// lockDeliveries locks the deliveries that writeOutcomes changes, in the order of the keys. writeOutcomes finds
	// rows by ctid: without the locks it would miss a row that a concurrent UPDATE gives another ctid.
	lockDeliveries = `
SELECT FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::int[]) AS o (account_id, event_id, endpoint_id, resends, attempts)
CROSS JOIN LATERAL (SELECT FROM ` + attempted + ` FOR NO KEY UPDATE) d`

	// writeOutcomes changes only deliveries that are as the attempt found them.
	writeOutcomes = writeOutcomesOf + `
CROSS JOIN LATERAL (SELECT ctid AS tid FROM ` + attempted + `) found
WHERE d.ctid = found.tid`

	// attempted selects the delivery of the outcome o, if it is as the attempt found it, at the end of a subquery; see
	// events.SelectSQL. The event is compared as a range, because other indexes are in the order of the endpoint.
	attempted = `webhook_deliveries k
  WHERE k.account_id = o.account_id AND k.event_id >= o.event_id AND k.event_id <= o.event_id AND k.endpoint_id = o.endpoint_id
    AND k.status = 'pending' AND k.resends = o.resends AND k.attempts = o.attempts
  ORDER BY k.account_id, k.event_id, k.endpoint_id`

	writeOutcomesOf = `
UPDATE webhook_deliveries d SET
  attempts = d.attempts + 1, status = o.status, last_status = NULLIF(o.last_status, 0), last_error = NULLIF(o.last_error, ''),
  next_attempt_at = now() + CASE WHEN o.status = 'pending' THEN o.delay * interval '1 second' END,
  delivered_at = now() + CASE WHEN o.status = 'delivered' THEN interval '0' END
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::int[], $6::text[], $7::int[], $8::text[], $9::double precision[])
  AS o (account_id, event_id, endpoint_id, resends, attempts, status, last_status, last_error, delay)`

	// writeHealth sets when attempts to endpoints began to fail, clears it after a success, and disables endpoints.
	// Only attempts to the current URL count. Citus allows only immutable functions in CASE, here and in writeOutcomes,
	// so the times are computed before.
	writeHealth = `
UPDATE webhook_endpoints e SET
  failing_since = CASE WHEN h.succeeded THEN NULL ELSE COALESCE(e.failing_since, h.now) END,
  disabled_reason = CASE WHEN h.succeeded THEN NULL WHEN h.gone THEN 'gone' WHEN e.failing_since <= h.disabled_before THEN 'failing' END,
  updated_at = CASE WHEN NOT h.succeeded AND (h.gone OR e.failing_since <= h.disabled_before) THEN h.now ELSE e.updated_at END
FROM (
  SELECT *, now() AS now, now() - $6::double precision * interval '1 second' AS disabled_before
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::boolean[], $5::boolean[]) AS u (account_id, id, url, succeeded, gone) OFFSET 0) h
WHERE e.account_id = h.account_id AND e.id = h.id AND e.url = h.url AND e.disabled_reason IS NULL
  AND CASE WHEN h.succeeded THEN e.failing_since IS NOT NULL
    ELSE h.gone OR e.failing_since IS NULL OR e.failing_since <= h.disabled_before END`
)

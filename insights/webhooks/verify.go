package webhooks

import "aiv/store"

// Invariants returns the invariants of the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name: "run_event",
		Doc: "An event of a run has the type of the run's status. Every run that became final in the last 29 days, and after events were " +
			"introduced, has one, unless its account is erased.",
		Query: `
SELECT format('run %s of account %s: %s, with %s', r.id, r.account_id, r.status, COALESCE('an event of the type ' || e.type, 'no event'))
FROM measurement_runs r
LEFT JOIN events e ON e.account_id = r.account_id AND e.subject_id = r.id AND e.type LIKE 'run.%'
LEFT JOIN accounts a ON a.id = r.account_id
WHERE e.type <> 'run.' || r.status
  OR e.id IS NULL AND a.erased_at IS NULL AND r.finished_at >= now() - interval '29 days' AND r.finished_at >= ` + eventsSince,
	}, {
		Name: "webhook_queues_wake",
		Doc:  "The queue of an account that no process owns wakes no later than its first pending delivery to an enabled endpoint is due.",
		Query: `
SELECT format('account %s wakes at %s, and a delivery is due at %s', d.account_id, q.wake_at, d.first)
FROM (
  SELECT d.account_id, min(d.next_attempt_at) AS first
  FROM webhook_deliveries d
  JOIN webhook_endpoints e ON e.account_id = d.account_id AND e.id = d.endpoint_id AND e.deleted_at IS NULL AND e.disabled_reason IS NULL
  WHERE d.status = 'pending' GROUP BY d.account_id) d
LEFT JOIN webhook_queues q ON q.account_id = d.account_id
WHERE q.account_id IS NULL OR q.owner IS NULL AND q.wake_at > d.first`,
	}}
}

// KnownTypes returns the invariant that events and endpoints have only these types. No constraint says so, because
// replacing one for each new type would block all deliveries for its time.
func KnownTypes(types []string) store.Invariant {
	return store.Invariant{
		Name: "event_types",
		Doc:  "The type of an event is known, and so are the types to which a webhook subscribes.",
		Query: `
SELECT format('event %s of account %s: %s', id, account_id, type) FROM events WHERE type <> ALL ($1::text[])
UNION ALL
SELECT format('webhook %s of account %s: %s', id, account_id, array_to_string(events, ', ')) FROM webhook_endpoints
WHERE events <> '{*}' AND NOT events <@ $1::text[]`,
		Args: []any{types},
	}
}

// eventsSince is when the migration was applied that made the table of events. No release was deployed before it.
const eventsSince = `(SELECT applied_at FROM schema_migrations WHERE version = 6)`

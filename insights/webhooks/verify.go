package webhooks

import "aiv/store"

// Invariants returns the invariants of the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name: "webhook_queues_wake",
		Doc:  "An account with pending deliveries to enabled endpoints has a queue that wakes: without an owner, now or when the first is due.",
		Query: `
SELECT format('account %s wakes at %s, and a delivery is due at %s', d.account_id, q.wake_at, d.first)
FROM (
  SELECT d.account_id, min(d.next_attempt_at) AS first
  FROM webhook_deliveries d
  JOIN webhook_endpoints e ON e.account_id = d.account_id AND e.id = d.endpoint_id AND e.deleted_at IS NULL AND e.disabled_reason IS NULL
  WHERE d.status = 'pending' GROUP BY d.account_id) d
LEFT JOIN webhook_queues q ON q.account_id = d.account_id
WHERE q.account_id IS NULL OR q.owner IS NULL AND q.wake_at > GREATEST(d.first, clock_timestamp()) OR q.wake_at = 'infinity'`,
	}}
}

// KnownTypes returns the invariant that endpoints subscribe only to these types of events. It is not a
// constraint, for the reason given at [events.KnownTypes].
func KnownTypes(types []string) store.Invariant {
	return store.Invariant{
		Name: "webhook_event_types",
		Doc:  "The types of events to which a webhook subscribes are known.",
		Query: `
SELECT format('webhook %s of account %s: %s', id, account_id, array_to_string(events, ', ')) FROM webhook_endpoints
WHERE events <> '{*}' AND NOT events <@ $1::text[]`,
		Args: []any{types},
	}
}

package webhooks

import "aiv/store"

// Invariants returns the invariants of the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name: "run_event",
		Doc:  "A run that became final after the first recorded event, within the last 30 days, has one event, of the type of its status, unless its account is erased.",
		Query: `
SELECT format('run %s of account %s: %s, with %s events, of the type %s', r.id, r.account_id, r.status, COALESCE(e.n, 0), e.type)
FROM measurement_runs r
LEFT JOIN (
  SELECT account_id, subject_id, count(*) AS n, max(type) AS type FROM events WHERE type LIKE 'run.%' GROUP BY 1, 2
) e ON (e.account_id, e.subject_id) = (r.account_id, r.id)
LEFT JOIN accounts a ON a.id = r.account_id
WHERE a.erased_at IS NULL AND r.finished_at >= (SELECT min(created_at) FROM events) AND r.finished_at >= now() - interval '30 days'
  AND (e.n, e.type) IS DISTINCT FROM (1::bigint, 'run.' || r.status)`,
	}, {
		Name: "webhook_queues_wake",
		Doc:  "An account that no process owns wakes when, or before, the first pending delivery to one of its enabled endpoints is due.",
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

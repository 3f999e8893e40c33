package events

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
	}}
}

// KnownTypes returns the invariant that events have only these types. It is not a constraint, because replacing
// it for each new type would block all deliveries while it is checked.
func KnownTypes(types []string) store.Invariant {
	return store.Invariant{
		Name:  "event_types",
		Doc:   "The type of an event is known.",
		Query: `SELECT format('event %s of account %s: %s', id, account_id, type) FROM events WHERE type <> ALL ($1::text[])`,
		Args:  []any{types},
	}
}

// eventsSince is when the migration was applied that made the table of events. No release was deployed before it.
const eventsSince = `(SELECT applied_at FROM schema_migrations WHERE version = 6)`

package insights

import "aiv/store"

// Invariants returns the invariants of the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name:  "alert_type",
		Doc:   "The type of an alert is known.",
		Query: `SELECT format('alert %s of account %s: %s', id, account_id, type) FROM alerts WHERE type <> ALL ($1)`,
		Args:  []any{AlertTypes},
	}}
}

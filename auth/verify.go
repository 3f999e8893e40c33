package auth

import "aiv/store"

// Invariants returns what always holds for the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name:  "identity_revision",
		Doc:   "identity_revision has its row, without which no key can be checked.",
		Query: `SELECT 'identity_revision has no row' WHERE NOT EXISTS (SELECT FROM identity_revision)`,
	}}
}

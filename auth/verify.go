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

// KnownScopes returns the invariant that credentials have only these scopes. It is not a constraint, because replacing
// it for each new scope would block all requests while it is checked.
func KnownScopes(scopes []string) store.Invariant {
	return store.Invariant{
		Name: "credential_scopes",
		Doc:  "The scopes of a credential are known.",
		Query: `
SELECT format('credential %s of account %s: %s', id, account_id, array_to_string(scopes, ', ')) FROM credentials
WHERE NOT scopes <@ $1::text[]`,
		Args: []any{scopes},
	}
}

package auth

import "aiv/store/schema"

// Capability is what this package owns. aiv dispatch reads who acts for a schedule, without the hashes of keys, and on
// Citus which accounts a server that cannot be reached has. [Admin.EndErasing] deletes the credentials of an erased
// account.
var Capability = schema.Capability{
	Name: "auth",
	Tables: []schema.Table{
		{Name: "plans", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "accounts", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select},
			Erase: schema.Erasure{Kept: "the account stays, without its name, for its usage totals"}},
		{Name: "credentials", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select},
			Dispatch: schema.Privileges{schema.SelectOf("id", "account_id", "name", "key_prefix", "scopes", "rotated_from", "expires_at",
				"disabled_at", "revoked_at", "created_at")},
			Erase: schema.Erasure{With: "accounts"}},
		{Name: "identity_revision", Placement: schema.Reference, Serve: schema.Privileges{schema.Select}},
		{Name: "workers", Placement: schema.Coordinator,
			Dispatch: schema.Privileges{schema.Select, schema.UpdateOf("last_seen_at")}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"account": "acct", "credential": "cred", "worker": "wrk"},
}

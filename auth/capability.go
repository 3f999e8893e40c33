package auth

import "aiv/store/schema"

// Capability is what this package owns. aiv dispatch reads on Citus which accounts a server that cannot be reached has.
// [Admin.EndErasing] deletes the credentials of an erased account.
var Capability = schema.Capability{
	Name: "auth",
	Tables: []schema.Table{
		{Name: "plans", Placement: schema.Reference, Serve: schema.Privileges{schema.Select}},
		{Name: "accounts", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, DispatchOnCitus: schema.Privileges{schema.Select},
			Erase: schema.Erasure{Kept: "the account stays, without its name, for its usage totals"}},
		{Name: "credentials", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Erase: schema.Erasure{With: "accounts"}},
		{Name: "identity_revision", Placement: schema.Reference, Serve: schema.Privileges{schema.Select}},
		{Name: "workers", Placement: schema.Coordinator,
			Dispatch: schema.Privileges{schema.Select, schema.UpdateOf("last_seen_at")}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"account": "acct", "credential": "cred", "worker": "wrk"},
}

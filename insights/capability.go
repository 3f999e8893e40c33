package insights

import "aiv/store/schema"

// Capability is what this package owns. LockRuns locks both tables.
var Capability = schema.Capability{
	Name: "insights",
	Tables: []schema.Table{
		{Name: "recommendations", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select},
			Erase: schema.Erasure{First: schema.EraseByID},
			Purge: schema.Purge{Lock: LockRuns, Delete: schema.DetachRuns}},
		{Name: "alerts", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select},
			Erase: schema.Erasure{First: schema.EraseByID}, Purge: schema.Purge{Delete: schema.DetachRuns}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"alert": "alert", "recommendation": "rec"},
	Scopes:     []string{"recommendations:read", "alerts:read"},
	Events: []schema.EventType{
		{Name: "alert.opened", Scope: "alerts:read"},
		{Name: "recommendation.suggested", Scope: "recommendations:read"},
	},
}

package events

import "aiv/store/schema"

// Capability is what this package owns. The packages that cause events list the types.
var Capability = schema.Capability{
	Name: "events",
	Tables: []schema.Table{
		{Name: "events", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Delete},
			Erase:    schema.Erasure{First: schema.EraseByID}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"event": "evt"},
}

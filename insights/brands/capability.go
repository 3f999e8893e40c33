package brands

import "aiv/store/schema"

// Capability is what this package owns. aiv serve changes brands; aiv dispatch reads them.
var Capability = schema.Capability{
	Name: "brands",
	Tables: []schema.Table{
		{Name: "brands", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select}, Erase: schema.Erasure{First: schema.EraseByID}},
		{Name: "brand_revisions", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select}, Erase: schema.Erasure{Last: schema.EraseAtOnce}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"brand": "brand"},
}

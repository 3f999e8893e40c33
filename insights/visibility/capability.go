package visibility

import "aiv/store/schema"

// Capability is what this package owns. aiv dispatch writes facts, aiv serve reads them. A [Counter] has the
// invariants.
var Capability = schema.Capability{
	Name: "visibility",
	Tables: []schema.Table{
		{Name: "visibility_facts", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select}, Dispatch: all,
			Purge: schema.Purge{Delete: schema.PurgeRows}},
		{Name: "visibility_backlog", Placement: schema.ByAccount, Dispatch: all, Purge: schema.Purge{Delete: schema.PurgeRows}},
		{Name: "visibility_recounts", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update}, Erase: schema.Erasure{Last: schema.EraseAtOnce}},
	},
}

var all = schema.Privileges{schema.Select, schema.Insert, schema.Update, schema.Delete}

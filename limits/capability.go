package limits

import "aiv/store/schema"

// Capability is what this package owns.
var Capability = schema.Capability{
	Name: "limits",
	Tables: []schema.Table{
		{Name: "api_rate_limit_buckets", Placement: schema.ByAccount,
			Serve: schema.Privileges{schema.Select, schema.Insert, schema.Update, schema.Delete},
			Erase: schema.Erasure{Last: erase}},
	},
	Invariants: Invariants(),
}

package idempotency

import "aiv/store/schema"

// Capability is what this package owns. Package runs deletes the records of runs with the runs, by [Forget].
var Capability = schema.Capability{
	Name: "idempotency",
	Tables: []schema.Table{
		{Name: "idempotency_records", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.Delete},
			Dispatch: schema.Privileges{schema.Select, schema.Insert},
			Purge:    schema.Purge{With: "measurement_runs"}},
	},
	Invariants: Invariants(),
}

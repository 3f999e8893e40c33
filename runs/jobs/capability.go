package jobs

import "aiv/store/schema"

// Capability is what this package owns. Tables that services write and that belong to no account are on the coordinator
// of a cluster, so that they do not depend on every server. [Unqueue] deletes the rows of runs in four tables. On
// Citus, aiv serve itself deletes the queue of a run that it cancels.
var Capability = schema.Capability{
	Name: "jobs",
	Tables: []schema.Table{
		{Name: "job_arrivals", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Insert},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Delete}, Purge: schema.Purge{With: "job_queue"}},
		{Name: "job_queue", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select}, Dispatch: all,
			ServeOnCitus: schema.Privileges{schema.Delete}, Purge: schema.Purge{Prepare: Unqueue}},
		{Name: "job_turns", Placement: schema.ByAccount, Dispatch: all, Erase: schema.Erasure{Last: eraseTurns}},
		{Name: "job_leases", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select}, Dispatch: all,
			Purge: schema.Purge{With: "job_queue"}},
		{Name: "job_holds", Placement: schema.Coordinator, Dispatch: all, Purge: schema.Purge{With: "job_queue"}},
		{Name: "job_results", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.UpdateOf("answer")},
			Purge:    schema.Purge{Delete: schema.PurgeRows}},
		{Name: "job_attempts", Placement: schema.ByAccount,
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Delete}, Purge: schema.Purge{Delete: schema.PurgeRows}},
		{Name: "provider_settings", Placement: schema.Reference, Dispatch: schema.Privileges{schema.Select}},
		{Name: "provider_pauses", Placement: schema.Coordinator, Dispatch: schema.Privileges{schema.Select, schema.Insert}},
		{Name: "provider_throttles", Placement: schema.Coordinator,
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update}},
		{Name: "provider_minutes", Placement: schema.Coordinator, Dispatch: all},
	},
	Sequences:  []schema.Object{{Name: "job_turn_numbers", Dispatch: schema.Privileges{schema.Usage}}},
	Invariants: Invariants(),
}

var all = schema.Privileges{schema.Select, schema.Insert, schema.Update, schema.Delete}

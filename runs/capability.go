package runs

import "aiv/store/schema"

// Capability is what this package owns. aiv dispatch creates the runs of schedules. A [Purger] deletes the rows of runs
// itself. On Citus, cancel_run has the privileges of its caller.
var Capability = schema.Capability{
	Name: "runs",
	Tables: []schema.Table{
		{Name: "measurement_runs", Placement: schema.ByAccount,
			Serve: schema.Privileges{schema.Select, schema.Insert},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.UpdateOf("status", "jobs_returned", "jobs_completed",
				"jobs_failed", "jobs_canceled", "jobs_counted", "started_at", "finished_at", "answers_deleted")},
			ServeOnCitus: schema.Privileges{schema.UpdateOf("status", "finished_at", "jobs_returned", "jobs_canceled")},
			Purge:        schema.Purge{With: "measurement_runs"}},
		{Name: "measurement_run_models", Placement: schema.ByAccount,
			Serve: schema.Privileges{schema.Select, schema.Insert}, Dispatch: schema.Privileges{schema.Insert},
			Purge: schema.Purge{With: "measurement_runs"}},
		{Name: "measurement_jobs", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Insert},
			Dispatch: schema.Privileges{schema.Insert}, Purge: schema.Purge{With: "measurement_runs"}},
		{Name: "usage_records", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Insert},
			Dispatch: schema.Privileges{schema.Insert}, Purge: schema.Purge{With: "measurement_runs"}},
		{Name: "account_months", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Erase:    schema.Erasure{Kept: "the usage totals of an erased account are kept"}},
	},
	Functions:  []schema.Object{{Name: "cancel_run", Serve: schema.Privileges{schema.Execute}}},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"run": "run"},
	Scopes:     []string{"runs:read", "runs:write"},
	Events: []schema.EventType{
		{Name: "run.completed", Scope: "runs:read"},
		{Name: "run.partial", Scope: "runs:read"},
		{Name: "run.failed", Scope: "runs:read"},
		{Name: "run.canceled", Scope: "runs:read"},
	},
}

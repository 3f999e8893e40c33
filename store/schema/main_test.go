package schema_test

import (
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// capabilities are some tables of the program, whose list is in a package that this one must not import.
var capabilities = []schema.Capability{schema.Base, {
	Tables: []schema.Table{
		{Name: "plans", Serve: schema.Privileges{schema.Select}},
		{Name: "accounts", Serve: schema.Privileges{schema.Select}},
		{Name: "credentials", Serve: schema.Privileges{schema.Select}},
		{Name: "models", Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "provider_dependencies",
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "measurement_runs", Serve: schema.Privileges{schema.Select, schema.Insert}, // both services create runs
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.UpdateOf("status", "started_at")}},
		{Name: "idempotency_records", Serve: schema.Privileges{schema.Select, schema.Insert, schema.Delete}},
		{Name: "job_queue", Serve: schema.Privileges{schema.Select},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Delete}},
	},
	Functions: []schema.Object{{Name: "cancel_run", Serve: schema.Privileges{schema.Execute}}},
	Sequences: []schema.Object{{Name: "job_turn_numbers", Dispatch: schema.Privileges{schema.Usage}}},
}}

package catalog

import "aiv/store/schema"

// Capability is what this package owns.
var Capability = schema.Capability{
	Name: "catalog",
	Tables: []schema.Table{
		// Operators write what all accounts share; services only read it.
		{Name: "methodologies", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "providers", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "provider_dependencies", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "models", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "questions", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "question_tags", Placement: schema.Reference, Serve: schema.Privileges{schema.Select}},
		// Customers write the tables of own questions.
		{Name: "own_questions", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.UpdateOf("topic", "tags", "status", "form_hash")},
			Dispatch: schema.Privileges{schema.Select},
			Erase:    schema.Erasure{First: schema.EraseByID}},
		{Name: "own_question_tags", Placement: schema.ByAccount,
			Serve: schema.Privileges{schema.Select, schema.Insert, schema.Delete},
			Erase: schema.Erasure{With: "own_questions"}},
		{Name: "own_question_accounts", Placement: schema.ByAccount,
			Serve: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Erase: schema.Erasure{First: schema.EraseAtOnce}},
		{Name: "catalog_revision", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
	},
	Invariants: Invariants(),
}

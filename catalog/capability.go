package catalog

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/schema"
)

// Capability is what this package owns.
var Capability = schema.Capability{
	Name: "catalog",
	Tables: []schema.Table{
		{Name: "methodologies", Placement: schema.Reference, Serve: schema.Privileges{schema.Select}},
		{Name: "providers", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "provider_dependencies", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "models", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "questions", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select},
			Erase: schema.Erasure{First: eraseQuestions}},
		{Name: "question_tags", Placement: schema.Reference,
			Serve: schema.Privileges{schema.Select}, Erase: schema.Erasure{With: "questions"}},
		{Name: "catalog_revision", Placement: schema.Reference, Serve: schema.Privileges{schema.Select}},
	},
	Invariants: Invariants(),
}

func eraseQuestions(ctx context.Context, pool *pgxpool.Pool, _ string, account store.ID) (int64, error) {
	return (&Admin{Pool: pool}).EraseQuestions(ctx, account)
}

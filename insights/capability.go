package insights

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/schema"
)

// Capability is what this package owns. aiv dispatch derives rows, and aiv serve ends the rows of a schedule that it
// deletes. lockForRuns locks both tables.
var Capability = schema.Capability{
	Name: "insights",
	Tables: []schema.Table{
		{Name: "recommendations", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.UpdateOf("status", "updated_at", "schedule_id")},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Erase:    schema.Erasure{First: schema.EraseByID},
			Purge:    schema.Purge{Lock: lockForRuns, Delete: schema.DetachRuns}},
		{Name: "alerts", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.UpdateOf("status", "resolved_at", "schedule_id")},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Erase:    schema.Erasure{First: schema.EraseByID}, Purge: schema.Purge{Delete: schema.DetachRuns}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"alert": "alert", "recommendation": "rec"},
	Scopes:     []string{"recommendations:read", "alerts:read"},
	Events: []schema.EventType{
		{Name: events.AlertOpened, Scope: "alerts:read"},
		{Name: events.RecommendationSuggested, Scope: "recommendations:read"},
	},
}

// lockForRuns keeps imports out before rows of runs are locked: an import locks the tables first and then, by its
// foreign keys, runs. The lock conflicts with lockTables.
func lockForRuns(ctx context.Context, tx pgx.Tx, _ store.ID, _ []store.ID) error {
	_, err := tx.Exec(ctx, `LOCK TABLE recommendations, alerts IN ROW EXCLUSIVE MODE`)
	return err
}

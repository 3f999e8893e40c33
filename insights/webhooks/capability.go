package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/schema"
)

// Capability is what this package owns. Deliveries are deleted with their events.
var Capability = schema.Capability{
	Name: "webhooks",
	Tables: []schema.Table{
		{Name: "webhook_endpoints", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select, schema.Update, schema.Delete},
			Erase:    schema.Erasure{First: hideEndpointsOf, Last: schema.EraseAtOnce}},
		{Name: "webhook_deliveries", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update, schema.Delete},
			Erase:    schema.Erasure{With: "events"}},
		{Name: "webhook_queues", Placement: schema.ByAccount,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Erase:    schema.Erasure{Last: schema.EraseAtOnce}},
		{Name: "webhook_hosts", Placement: schema.Coordinator,
			Serve:    schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select, schema.Delete}},
		{Name: "webhook_master", Placement: schema.Reference,
			Serve:    schema.Privileges{schema.Select, schema.Insert},
			Dispatch: schema.Privileges{schema.Select, schema.Insert},
			// An INSERT locks a reference table on the other servers.
			ServeOnCitus: schema.Privileges{schema.UpdateOf()}, DispatchOnCitus: schema.Privileges{schema.UpdateOf()}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"webhook": "wh"},
	Scopes:     []string{"webhooks:manage"},
	Events:     []schema.EventType{{Name: events.WebhookTest}},
}

// hideEndpointsOf hides an account's endpoints, so that they get no new deliveries. They can be deleted when the
// transactions that began before have ended, because these may add deliveries. An erasure calls it twice, the second
// time when no request is left that could add an endpoint.
func hideEndpointsOf(ctx context.Context, pool *pgxpool.Pool, _ string, account store.ID) (int64, error) {
	return 0, store.Step(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, hideEndpoints, account)
		return err
	})
}

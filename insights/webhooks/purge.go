package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// purgeStep is how many rows one transaction deletes.
const purgeStep = 500

// Purge deletes the deliveries of deleted endpoints in small steps, then the endpoints. Other deliveries are deleted
// with their events.
func Purge(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, deleteHosts); err != nil {
		return err
	}
	return purgeEndpoints(ctx, pool)
}

// A deletedEndpoint is a deleted endpoint whose row still exists. Old means that it was deleted over an hour ago.
type deletedEndpoint struct {
	Account, ID store.ID
	Old         bool
}

// purgeEndpoints deletes the deliveries of all deleted endpoints, and the old endpoints themselves. Those that are not
// old stay, because a transaction that began before their deletion may still queue deliveries to them.
func purgeEndpoints(ctx context.Context, pool *pgxpool.Pool) error {
	endpoints, err := store.Collect(ctx, pool, pgx.RowToStructByPos[deletedEndpoint], deletedEndpoints)
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		_, err := store.ExecInSteps(ctx, pool, purgeStep, deleteDeliveries, e.Account, e.ID)
		if err == nil && e.Old {
			_, err = pool.Exec(ctx, removeEndpoint, e.Account, e.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package events

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// PurgeStep is how many events one transaction deletes.
const PurgeStep = 500

// Purge deletes events older than Retention in small steps, and returns how many. Deliveries are deleted with their
// events. It deletes nothing and returns a *store.ClockError if the clocks of the process and the database disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool) (total int64, err error) {
	before, err := store.PurgeBefore(ctx, pool, Retention)
	if err != nil {
		return 0, err
	}
	return store.ExecInSteps(ctx, pool, PurgeStep, deleteEvents, store.OnCitus(citusDeleteEvents), before)
}

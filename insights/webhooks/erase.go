package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// EraseEvents hides an account's endpoints, so that they get no new deliveries, and deletes its events with their deliveries in
// small steps. It returns how many events it deleted.
func EraseEvents(ctx context.Context, pool *pgxpool.Pool, account store.ID) (total int64, err error) {
	err = store.Step(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, hideEndpoints, account)
		return err
	})
	if err != nil {
		return 0, err
	}
	for n := int64(purgeStep); n == purgeStep; total += n {
		err := store.Step(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, eraseEvents, account, purgeStep)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// EraseEndpoints deletes the rows of an account's endpoints, which EraseEvents has hidden, and its queue. Transactions that
// began before EraseEvents must have ended, because they may add deliveries.
func EraseEndpoints(ctx context.Context, pool *pgxpool.Pool, account store.ID) error {
	return store.Step(ctx, pool, func(tx pgx.Tx) error {
		for _, statement := range []string{eraseQueue, eraseEndpoints} {
			if _, err := tx.Exec(ctx, statement, account); err != nil {
				return err
			}
		}
		return nil
	})
}

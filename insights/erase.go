package insights

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// LockRuns keeps imports out before rows of runs are locked: an import locks the tables first and then, by its foreign keys,
// runs.
func LockRuns(ctx context.Context, tx pgx.Tx, _ store.ID, _ []store.ID) error {
	_, err := tx.Exec(ctx, lockForRuns)
	return err
}

// DetachRuns makes the recommendations and alerts that refer to runs refer to no run, in the transaction that deletes the
// runs.
func DetachRuns(ctx context.Context, tx pgx.Tx, account store.ID, runs []store.ID) error {
	if _, err := tx.Exec(ctx, detachRecommendations, account, runs); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, detachAlerts, account, runs)
	return err
}

// eraseStep is how many rows are deleted in one transaction.
const eraseStep = 500

// Erase deletes the recommendations and alerts of an account in small steps, and returns how many it deleted.
func Erase(ctx context.Context, pool *pgxpool.Pool, account store.ID) (total int64, err error) {
	for _, statement := range []string{eraseRecommendations, eraseAlerts} {
		for n := int64(eraseStep); n == eraseStep; total += n {
			err := store.Step(ctx, pool, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, statement, account, eraseStep)
				n = tag.RowsAffected()
				return err
			})
			if err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

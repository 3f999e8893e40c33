package insights

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// LockRuns keeps imports out before rows of runs are locked: an import locks the tables first and then, by its foreign
// keys, runs.
func LockRuns(ctx context.Context, tx pgx.Tx, _ store.ID, _ []store.ID) error {
	_, err := tx.Exec(ctx, lockForRuns)
	return err
}

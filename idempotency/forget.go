package idempotency

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// Forget deletes the records of runs of an account, in the transaction that deletes the runs. created are the times at
// which the runs were created.
func Forget(ctx context.Context, tx pgx.Tx, account store.ID, runs []store.ID, created []time.Time) error {
	_, err := tx.Exec(ctx, forget, account, runs, created)
	return err
}

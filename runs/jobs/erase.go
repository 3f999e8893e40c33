package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// LockRuns takes the lock of claims if final runs of an account still have jobs that may be queued or claimed, as canceled
// runs have for a while. Call it before locking rows of runs, as claims do.
func LockRuns(ctx context.Context, tx pgx.Tx, account store.ID, runs []store.ID) error {
	var pending bool
	if err := tx.QueryRow(ctx, hasPending, account, runs).Scan(&pending); err != nil || !pending {
		return err
	}
	_, err := tx.Exec(ctx, lockClaims)
	return err
}

// DeleteRuns deletes all rows of runs, which are final and locked, in the transaction that deletes the runs.
func DeleteRuns(ctx context.Context, tx pgx.Tx, account store.ID, runs []store.ID) error {
	var b pgx.Batch
	for _, statement := range []string{deleteArrivalsOfRuns, deleteQueueOfRuns, deleteLeasesOfRuns, deleteResultsOfRuns, deleteAttemptsOfRuns} {
		b.Queue(statement, account, runs)
	}
	return tx.SendBatch(ctx, &b).Close()
}

// Erase deletes the turns of an account that has no more runs.
func Erase(ctx context.Context, pool *pgxpool.Pool, account store.ID) error {
	return store.Step(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockClaims); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, deleteTurns, account)
		return err
	})
}

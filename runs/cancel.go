package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Errors that callers compare with.
var (
	ErrNotFound = errors.New("the account has no such run")
	ErrFinal    = errors.New("the run is final")
)

// Cancel cancels a run that is queued or running and returns it. Jobs of the run that have not completed or failed,
// including leased ones, are then canceled too. Canceling a canceled run returns it unchanged. Cancel returns
// ErrNotFound if the account has no such run, and the run with ErrFinal if the run has ended in another way.
func (r *Runs) Cancel(ctx context.Context, account, id store.ID) (*Run, error) {
	run, err := cancel(ctx, r.cfg.Pool, r.cfg.Finished, account, id)
	if run != nil || err != nil {
		return run, err
	}
	// The run does not exist or was final already. The read is not part of the transaction, but final runs stay final.
	switch run, err = get(ctx, r.cfg.Reads, account, id); {
	case err != nil:
		return nil, err
	case run == nil:
		return nil, ErrNotFound
	case run.Status != "canceled":
		return run, ErrFinal
	}
	return run, nil
}

// cancel cancels a run and returns it, or nil if the account has no such run that is queued or running. finished may be
// nil.
func cancel(ctx context.Context, pool *pgxpool.Pool, finished func(context.Context, store.Tx, []Run) error,
	account, id store.ID) (run *Run, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT ` + store.BoundIdle) // claims wait for the row of the run
		b.Queue(cancelRun, account, id).Query(func(rows pgx.Rows) (err error) {
			run, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[Run])
			if errors.Is(err, pgx.ErrNoRows) {
				run, err = nil, nil
			}
			return err
		})
		if err := tx.SendBatch(ctx, &b).Close(); err != nil || run == nil {
			return err
		}
		// cancel_run has locked the run, so these counts are its last ones.
		if err := AddFinished(ctx, tx, []Run{*run}); err != nil || finished == nil {
			return err
		}
		return finished(ctx, tx, []Run{*run})
	})
	if err != nil {
		return nil, fmt.Errorf("canceling a run: %w", err)
	}
	return run, nil
}

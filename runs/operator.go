package runs

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Recent returns up to limit of the newest runs for an operator. A nil account means all accounts, nil statuses all.
func Recent(ctx context.Context, pool *pgxpool.Pool, account *store.ID, statuses []string, limit int) (found []Run, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) (err error) {
		found, err = store.Collect(ctx, tx, pgx.RowToStructByPos[Run], selectRecent, store.OnCitus(citusRecent), account, statuses, limit)
		return err
	})
	return found, err
}

// Find returns a run of any account for an operator. It returns ErrNotFound.
func Find(ctx context.Context, pool *pgxpool.Pool, id store.ID) (*Run, error) {
	run, err := store.CollectOne(ctx, pool, pgx.RowToAddrOfStructByPos[Run], findRun, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	return run, err
}

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
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectRecent, store.OnCitus(citusRecent), account, statuses, limit)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Run])
		return err
	})
	return found, err
}

// Find returns a run of any account for an operator. It returns ErrNotFound.
func Find(ctx context.Context, pool *pgxpool.Pool, id store.ID) (*Run, error) {
	rows, err := pool.Query(ctx, findRun, id)
	if err != nil {
		return nil, err
	}
	run, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[Run])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	return run, err
}

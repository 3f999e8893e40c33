package runs

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Recent returns the newest runs for an operator: of all accounts or of one, in any state or in some, at most limit.
func Recent(ctx context.Context, pool *pgxpool.Pool, account *store.ID, statuses []string, limit int) (found []Run, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectRecent, account, statuses, limit)
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

const (
	// selectRecent reads the newest runs of each account through its list.
	selectRecent = `
SELECT ` + columns + ` FROM accounts a CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE r.account_id = a.id AND ($2::text[] IS NULL OR r.status = ANY ($2))
  ORDER BY r.created_at DESC, r.id DESC LIMIT $3) r
WHERE $1::uuid IS NULL OR a.id = $1 ORDER BY r.created_at DESC, r.id DESC LIMIT $3`

	findRun = `SELECT ` + columns + ` FROM accounts a JOIN measurement_runs r ON r.account_id = a.id AND r.id = $1`
)

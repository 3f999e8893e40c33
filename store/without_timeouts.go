package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// WithoutTimeouts runs f in a transaction without the timeouts and planner settings of Open, which suit requests only. An
// operator's import or report may run for long, wait for another import, and scan tables. f must not take locks that
// requests wait for.
func WithoutTimeouts(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, withoutTimeouts); err != nil {
			return err
		}
		return f(tx)
	})
}

// withoutTimeouts changes the settings until the end of the transaction.
const withoutTimeouts = `
SELECT set_config(name, value, true) FROM (VALUES
  ('statement_timeout', '0'), ('lock_timeout', '0'), ('enable_seqscan', 'on'), ('enable_bitmapscan', 'on'), ('enable_sort', 'on'),
  ('enable_incremental_sort', 'on'), ('plan_cache_mode', 'auto')) AS s (name, value)`

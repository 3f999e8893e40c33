package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Unhurried runs f in a transaction for which the settings of Open, made for requests, don't hold: an operator's import or
// report may take its time, wait for another one, and read whole tables. What f may hold up are such as itself only.
func Unhurried(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, unhurried); err != nil {
			return err
		}
		return f(tx)
	})
}

// unhurried sets until the end of the transaction.
const unhurried = `
SELECT set_config(name, value, true) FROM (VALUES
  ('statement_timeout', '0'), ('lock_timeout', '0'), ('enable_seqscan', 'on'), ('enable_bitmapscan', 'on'), ('enable_sort', 'on'),
  ('enable_incremental_sort', 'on'), ('plan_cache_mode', 'auto')) AS s (name, value)`

package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Snapshot calls f with a transaction that only reads, in a hot session or a plain one. All statements of f see the
// same snapshot, and are planned for what they read now: they may sort, hash and use bitmaps, but scan no table, which
// would cost more with the rows of other accounts. db is a pool, a connection, or the transaction of an outer call,
// which f then joins.
func Snapshot(ctx context.Context, db Querier, f func(pgx.Tx) error) error {
	if tx, ok := db.(pgx.Tx); ok {
		return f(tx)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, db.(Beginner), options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, snapshotSettings); err != nil {
			return err
		}
		return f(tx)
	})
}

// snapshotSettings changes the settings until the end of the transaction.
const snapshotSettings = `
SELECT set_config(name, value, true) FROM (VALUES
  ('plan_cache_mode', 'force_custom_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'on'), ('enable_sort', 'on'),
  ('enable_incremental_sort', 'on')) AS s (name, value)`

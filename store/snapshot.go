package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Snapshot calls f with a transaction that only reads. All statements of f see the same snapshot. db is a pool or a connection.
func Snapshot(ctx context.Context, db Querier, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.(beginner), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Collect runs a query and collects its rows, each read by row.
func Collect[T any](ctx context.Context, db Querier, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// CollectOne is Collect for a query that returns one row. It returns [pgx.ErrNoRows] if there is none.
func CollectOne[T any](ctx context.Context, db Querier, row pgx.RowToFunc[T], sql string, args ...any) (one T, err error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return one, err
	}
	return pgx.CollectExactlyOneRow(rows, row)
}

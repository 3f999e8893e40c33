package store

import (
	"context"
	"errors"

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

// ReadOne is CollectOne for a T with one field for each column, in order. absent, unless it is nil, replaces the error of
// a missing row.
func ReadOne[T any](ctx context.Context, db Querier, absent error, sql string, args ...any) (*T, error) {
	one, err := CollectOne(ctx, db, pgx.RowToAddrOfStructByPos[T], sql, args...)
	if errors.Is(err, pgx.ErrNoRows) && absent != nil {
		return nil, absent
	}
	return one, err
}

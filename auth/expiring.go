package auth

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// An Expiring is a valid credential that expires soon and has no successor.
type Expiring struct {
	ID        store.ID
	AccountID store.ID
	Name      string
	KeyPrefix string
	ExpiresAt time.Time
}

// ReadExpiring returns up to most credentials that expire within the given time, soonest first.
func ReadExpiring(ctx context.Context, pool *pgxpool.Pool, within time.Duration, most int) ([]Expiring, error) {
	rows, err := pool.Query(ctx, expiring, within, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Expiring])
}

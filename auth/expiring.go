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
	return store.Collect(ctx, pool, pgx.RowToStructByPos[Expiring], expiring, within, most)
}

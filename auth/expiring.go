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

const expiring = `
SELECT id, account_id, name, key_prefix, expires_at FROM credentials
WHERE expires_at > now() AND expires_at <= now() + $1::interval AND revoked_at IS NULL AND disabled_at IS NULL
  AND NOT EXISTS (SELECT FROM credentials s
    WHERE s.rotated_from = credentials.id AND s.revoked_at IS NULL AND s.disabled_at IS NULL AND (s.expires_at IS NULL OR s.expires_at >= credentials.expires_at) OFFSET 0)
ORDER BY expires_at LIMIT $2`

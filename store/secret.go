package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Secret returns a secret that all processes share. Migrations create them.
func Secret(ctx context.Context, pool *pgxpool.Pool, name string) (secret []byte, err error) {
	if err = pool.QueryRow(ctx, `SELECT secret FROM shared_secrets WHERE name = $1`, unprepared, name).Scan(&secret); err != nil {
		return nil, fmt.Errorf("read the shared secret %q: %w", name, err)
	}
	return secret, nil
}

// Invariants returns what always holds for the tables of this package.
func Invariants() []Invariant {
	return []Invariant{{
		Name: "shared_secrets",
		Doc: "shared_secrets has the secrets that the migrations made. Services do not start without cursor, nor without webhook_master " +
			"unless -webhook-master names a file.",
		Query: `
SELECT format('shared_secrets has no %s', n) FROM unnest('{cursor,webhook_master}'::text[]) n
WHERE NOT EXISTS (SELECT FROM shared_secrets s WHERE s.name = n)`,
	}}
}

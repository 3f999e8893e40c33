package storetest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// WithTracer returns a pool for the database of pool whose statements call the tracer.
func WithTracer(t testing.TB, pool *pgxpool.Pool, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	return reopen(t, pool, func(c *pgx.ConnConfig) { c.Tracer = tracer })
}

// reopen returns a pool for the database of pool with another configuration of its connections.
func reopen(t testing.TB, pool *pgxpool.Pool, change func(*pgx.ConnConfig)) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	change(config.ConnConfig)
	reopened, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reopened.Close)
	return reopened
}

package storetest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// WithClockAhead returns a pool for the database of pool in whose sessions clock_timestamp() is ahead of the server's
// clock by the given time. Other functions of time are unchanged.
func WithClockAhead(t testing.TB, pool *pgxpool.Pool, ahead time.Duration) *pgxpool.Pool {
	t.Helper()
	Exec(t, pool, `
		CREATE SCHEMA clock;
		CREATE TABLE clock.ahead (by interval);
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + by FROM clock.ahead'`)
	_, err := pool.Exec(t.Context(), `INSERT INTO clock.ahead VALUES ($1)`, ahead)
	Must(t, err)
	return reopen(t, pool, func(c *pgx.ConnConfig) { c.RuntimeParams["search_path"] = "clock, pg_catalog, public" })
}

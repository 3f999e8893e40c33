package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// WithClockAhead returns a pool for the database of pool in whose sessions clock_timestamp() is ahead of the server's
// clock by the given time. Other functions of time are unchanged.
func WithClockAhead(t testing.TB, pool *pgxpool.Pool, ahead time.Duration) *pgxpool.Pool {
	t.Helper()
	Exec(t, pool, `CREATE SCHEMA clock`)
	// The value is in a table, so that SetClockAhead can change it for sessions that are open.
	onEachServer(t, pool, `CREATE TABLE clock.ahead AS SELECT interval '0' AS by`)
	Exec(t, pool, `
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + by FROM clock.ahead'`)
	SetClockAhead(t, pool, ahead)
	// The schema precedes pg_catalog, so that its function is found first.
	return reopen(t, pool, func(c *pgx.ConnConfig) { c.RuntimeParams["search_path"] = "clock, pg_catalog, public" })
}

// SetClockAhead changes by how much the clock of WithClockAhead is ahead.
func SetClockAhead(t testing.TB, pool *pgxpool.Pool, ahead time.Duration) {
	t.Helper()
	onEachServer(t, pool, fmt.Sprintf(`UPDATE clock.ahead SET by = '%d microseconds'`, ahead.Microseconds()))
}

// onEachServer executes a statement on each server of a cluster, any of which may evaluate the function.
func onEachServer(t testing.TB, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if !OnCitus() {
		Exec(t, pool, sql)
		return
	}
	var failed *string
	Must(t, pool.QueryRow(t.Context(),
		`SELECT string_agg(result, '; ') FROM run_command_on_all_nodes($1) WHERE NOT success`, sql).Scan(&failed))
	if failed != nil {
		t.Fatalf("%s: %s", sql, *failed)
	}
}

package storetest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// TablesWith returns the tables of a migrated database that contain a text, in clear or in hexadecimal.
func TablesWith(t testing.TB, pool *pgxpool.Pool, text string) (tables []string) {
	t.Helper()
	names, err := store.Collect(t.Context(), pool, pgx.RowTo[string], `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`)
	// Without this, a database without tables would seem to contain no secret.
	if err != nil || len(names) < 20 {
		t.Fatalf("found the tables %v, %v", names, err)
	}
	for _, name := range names {
		var n int
		// The text of a row shows a bytea in hexadecimal.
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM `+name+` r
			WHERE strpos(r::text, $1) > 0 OR strpos(r::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0`, text).Scan(&n)
		Must(t, err)
		if n > 0 {
			tables = append(tables, name)
		}
	}
	return tables
}

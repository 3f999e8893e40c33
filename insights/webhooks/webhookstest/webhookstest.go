// Package webhookstest makes databases for the tests of package webhooks and of package delivery.
package webhookstest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// DB is the database of one test.
type DB struct{ Pool *pgxpool.Pool }

var kept storetest.Kept[*DB]

// New returns a migrated database without accounts, which may be one that an earlier test has used: its connections are
// open, and its tables are larger than a new database's.
func New(t testing.TB) *DB {
	t.Helper()
	return kept.Take(t, newDB, func(db *DB) error {
		return storetest.Clear(db.Pool, "webhook_deliveries webhook_queues webhook_endpoints webhook_hosts events audit_log accounts", "")
	})
}

// newDB returns a new database.
func newDB(t testing.TB) *DB {
	t.Helper()
	return &DB{storetest.Hot(t)}
}

// Exec executes a statement.
func (db *DB) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), sql, args...)
	storetest.Must(t, err)
}

// Count returns the number that a query selects.
func (db *DB) Count(t testing.TB, sql string, args ...any) int {
	t.Helper()
	return storetest.Value[int](t, db.Pool, sql, args...)
}

// Rows checks how many rows a table, or a part of it, has.
func (db *DB) Rows(t testing.TB, want int, from string, args ...any) {
	t.Helper()
	storetest.Equal(t, want, db.Count(t, `SELECT count(*) FROM `+from, args...), "rows of ", from, args)
}

// NewAccount creates an account.
func (db *DB) NewAccount(t testing.TB) store.ID {
	t.Helper()
	id := store.NewID()
	db.Exec(t, `
WITH plan AS (INSERT INTO plans (code, features) VALUES ('p', '{api_access}') ON CONFLICT DO NOTHING)
INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')`, id)
	return id
}

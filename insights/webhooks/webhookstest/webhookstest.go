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
// open, and its tables are not as small as those of a new one.
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
	if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Count returns the number that a query selects.
func (db *DB) Count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
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

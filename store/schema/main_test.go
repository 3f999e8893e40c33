package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// capabilities are some tables of the program, with privileges that tests expect.
var capabilities = []schema.Capability{schema.Base, {
	Tables: []schema.Table{
		{Name: "plans", Serve: schema.Privileges{schema.Select}},
		{Name: "accounts", Serve: schema.Privileges{schema.Select}},
		{Name: "credentials", Serve: schema.Privileges{schema.Select}},
		{Name: "models", Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "provider_dependencies", Serve: schema.Privileges{schema.Select}, Dispatch: schema.Privileges{schema.Select}},
		{Name: "measurement_runs", Serve: schema.Privileges{schema.Select, schema.Insert}, // both services create runs
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.UpdateOf("status", "started_at")}},
		{Name: "idempotency_records", Serve: schema.Privileges{schema.Select, schema.Insert, schema.Delete}},
		{Name: "job_queue", Serve: schema.Privileges{schema.Select},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Delete}},
	},
	Functions: []schema.Object{{Name: "cancel_run", Serve: schema.Privileges{schema.Execute}}},
	Sequences: []schema.Object{{Name: "job_turn_numbers", Dispatch: schema.Privileges{schema.Usage}}},
}}

var must, equal = storetest.Must, storetest.Equal

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return storetest.Open(t, url, store.Open, 4)
}

// as returns a pool of another role's sessions, with other values of settings.
func as(t testing.TB, owner *pgxpool.Pool, role string, settings ...string) *pgxpool.Pool {
	t.Helper()
	config := owner.Config()
	config.ConnConfig.User, config.MaxConns = role, 1
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// column returns the values that a query selects.
func column[T any](t testing.TB, pool *pgxpool.Pool, sql string) []T {
	t.Helper()
	values, err := store.Collect(t.Context(), pool, pgx.RowTo[T], sql)
	must(t, err)
	return values
}

// names returns the names of migrations, with a space between two.
func names(migrations []schema.Migration) string { return strings.Trim(fmt.Sprint(migrations), "[]") }

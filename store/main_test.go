package store_test

import (
	"context"
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var must, equal = storetest.Must, storetest.Equal

// open returns a pool of two plain sessions.
func open(t testing.TB, url string) *pgxpool.Pool { return opened(t, url, store.Open) }

func openHot(t testing.TB, url string) *pgxpool.Pool { return opened(t, url, store.OpenHot) }

func opened(t testing.TB, url string, open func(context.Context, string, int32) (*pgxpool.Pool, error)) *pgxpool.Pool {
	t.Helper()
	pool, err := open(t.Context(), url, 2)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// urlOfRole creates a role with settings such as jit = on, and returns the URL of the owner's database for it.
func urlOfRole(t testing.TB, owner *pgxpool.Pool, suffix string, settings ...string) string {
	t.Helper()
	name, quoted := storetest.NewRole(t, owner, suffix)
	for _, setting := range settings {
		storetest.Exec(t, owner, "ALTER ROLE "+quoted+" SET "+setting)
	}
	return strings.Replace(owner.Config().ConnString(), "user=aiv", "user="+name, 1)
}

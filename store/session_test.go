package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// TestCheckSession: a connection pooler that drops startup parameters is noticed; a URL that turns a timeout off is not
// reported.
func TestCheckSession(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for _, test := range []struct{ name, url, pooler, fault string }{
		{"direct", url, "", ""},
		{"a pooler that drops the parameters", url, `SET lock_timeout = 0; SET statement_timeout = 0`, "have no lock_timeout and no statement_timeout although"},
		{"turned off by the URL", url + "&lock_timeout=0", "", ""},
	} {
		opened, err := store.Open(t.Context(), test.url, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		config := opened.Config()
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, test.pooler)
			return err
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		err = store.CheckSession(t.Context(), pool)
		if (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.fault)
		}
	}
}

package schema_test

import (
	"errors"
	"slices"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// TestEveryTableIsPlaced: a table that a migration adds must be listed with its placement on a cluster, and the tables of
// accounts are distributed by account_id, which is the first column of each unique index, as Citus requires.
func TestEveryTableIsPlaced(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	rows, err := pool.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	got := schema.PlacedTables()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("placements differs from the tables of the schema (-schema +placements):\n%s", diff)
	}

	rows, err = pool.Query(t.Context(), `
SELECT indexrelid::regclass::text FROM pg_index i WHERE indisunique AND indrelid = ANY ($1::text[]::regclass[])
  AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = 'account_id')`,
		schema.TablesByAccount())
	if err != nil {
		t.Fatal(err)
	}
	bad, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(bad) > 0 {
		t.Errorf("unique indexes of tables by account that do not begin with account_id: %v", bad)
	}
}

func TestDistributeWithoutCitus(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	before := describeSchema(t, pool)
	if _, err := schema.Distribute(t.Context(), pool); !errors.Is(err, schema.ErrNoCitus) {
		t.Errorf("got error %v, want ErrNoCitus", err)
	}
	if diff := cmp.Diff(before, describeSchema(t, pool)); diff != "" {
		t.Errorf("the schema has changed:\n%s", diff)
	}
}

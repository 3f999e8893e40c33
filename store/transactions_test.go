package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"aiv/store"
	"aiv/store/storetest"
)

// TestStepIsRepeatedAfterALock: a step without a lock, or of a deadlock, is tried again from the start; any other error
// ends it, and so does the end of its context. Its timeouts end with it.
func TestStepIsRepeatedAfterALock(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t))
	lockTimeout, deadlock, other := &pgconn.PgError{Code: "55P03"}, &pgconn.PgError{Code: "40P01"}, &pgconn.PgError{Code: "23505"}
	const timeouts = `SELECT current_setting('lock_timeout') || ' ' || current_setting('statement_timeout')`
	ended, end := context.WithCancel(t.Context())
	defer end()
	for _, test := range []struct {
		ctx  context.Context
		errs []error // of the tries
		want error
	}{
		{t.Context(), []error{lockTimeout, deadlock, nil}, nil},
		{t.Context(), []error{other}, other},
		{ended, []error{lockTimeout}, context.Canceled},
	} {
		tries := 0
		err := store.Step(test.ctx, pool, func(tx pgx.Tx) error {
			equal(t, "2s 10min", storetest.Value[string](t, tx, timeouts), "timeouts")
			if _, err := tx.Exec(t.Context(), `CREATE TABLE made ()`); err != nil {
				t.Errorf("the try before has left something: %v", err)
			}
			if test.ctx == ended {
				end()
			}
			tries++
			return test.errs[tries-1]
		})
		if !errors.Is(err, test.want) || tries != len(test.errs) {
			t.Errorf("%v: got %v after %d tries, want %v", test.errs, err, tries, test.want)
		}
		storetest.Exec(t, pool, `DROP TABLE IF EXISTS made`)
		equal(t, "5s 30s", storetest.Value[string](t, pool, timeouts), "timeouts after it")
	}
}

// TestVerifyReturnsTheFirstBrokenRows: of the rows that break an invariant all are counted and the first 20 are returned.
func TestVerifyReturnsTheFirstBrokenRows(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	holds := store.Invariant{Name: "holds", Query: `SELECT 'x' WHERE false`}
	broken := store.Invariant{
		Name: "broken", Query: `SELECT format('%s %s', $1::text, n) FROM generate_series(1, 25) n`, Args: []any{"row"},
	}
	want := []store.Violation{{Invariant: broken, Count: 25}}
	for n := range 20 {
		want[0].Rows = append(want[0].Rows, fmt.Sprint("row ", n+1))
	}
	got, err := store.Verify(t.Context(), pool, []store.Invariant{holds, broken})
	must(t, err)
	equal(t, want, got, "violations")

	writes := store.Invariant{Name: "writes", Query: `UPDATE catalog_revision SET revision = revision RETURNING 'x'`}
	_, err = store.Verify(t.Context(), pool, []store.Invariant{holds, writes})
	if err == nil || !strings.HasPrefix(err.Error(), "verify writes: ") || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("an invariant that writes: %v", err)
	}
}

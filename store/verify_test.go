package store_test

import (
	"fmt"
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/storetest"
)

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

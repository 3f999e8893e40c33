package jobs

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// TestChangedRowsAreReadAgain: a transaction that finds that another one has changed its rows is rolled back and repeated.
func TestChangedRowsAreReadAgain(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	accounts, runs := []store.ID{store.NewID()}, []store.ID{store.NewID()}
	calls := 0
	err := inTransaction(t.Context(), pool, func(conn *pgxpool.Conn) error {
		var b pgx.Batch
		b.Queue("BEGIN")
		if calls++; calls > 1 {
			b.Queue(`INSERT INTO job_arrivals (account_id, run_id) SELECT unnest($1::uuid[]), unnest($2::uuid[])`, accounts, runs)
		}
		deleteArrivals(&b, accounts, runs, false)
		b.Queue("COMMIT")
		return conn.SendBatch(t.Context(), &b).Close()
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, %v, want 2 without an error", calls, err)
	}
}

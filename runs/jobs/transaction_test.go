package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// TestChangedRowsAreReadAgain: a transaction that finds that another one has changed its rows is rolled back and
// repeated.
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

// TestTriesAreBounded: a transaction that always fails because of others ends with an error, after which clients try
// again later.
func TestTriesAreBounded(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	for _, fault := range []error{errChanged, &pgconn.PgError{Code: "40P01"}} {
		calls := 0
		err := inTransaction(t.Context(), pool, func(*pgxpool.Conn) error {
			calls++
			if calls > 2*maxTransactionTries {
				return errors.New("endless")
			}
			return fault
		})
		if calls != maxTransactionTries || !errors.Is(err, fault) || !store.IsUnavailable(err) {
			t.Errorf("%v: %d calls, %v; want %d calls, and unavailable", fault, calls, err, maxTransactionTries)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := inTransaction(ctx, pool, func(*pgxpool.Conn) error {
		calls++
		cancel()
		return errChanged
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled transaction: %d calls, %v, want 1 and %v", calls, err, context.Canceled)
	}
}

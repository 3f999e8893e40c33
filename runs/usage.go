package runs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A UsageFilter selects months of accounts. A nil field does not restrict.
type UsageFilter struct {
	AccountID *store.ID
	From, To  *time.Time // From is inclusive, To exclusive
}

// MonthlyUsage is the usage of one account in one month (UTC) of its runs' creation.
type MonthlyUsage struct {
	AccountID   store.ID
	AccountName string
	Month       time.Time // its first moment
	Runs        int64
	Jobs        int64 // ordered
	Completed   int64 // jobs, also of running runs
	Failed      int64
	Canceled    int64
}

// Usage returns usage by account and month, oldest first.
func Usage(ctx context.Context, pool *pgxpool.Pool, f UsageFilter) (usage []MonthlyUsage, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) (err error) {
		usage, err = store.Collect(ctx, tx, pgx.RowToStructByPos[MonthlyUsage], monthlyUsage, f.AccountID, f.From, f.To)
		return err
	})
	return usage, err
}

// MonthOf returns the usage of an account in a month; nil means the current month by the database's clock.
func (r *Runs) MonthOf(ctx context.Context, account store.ID, month *time.Time) (MonthlyUsage, error) {
	u := MonthlyUsage{AccountID: account}
	err := r.cfg.Reads.QueryRow(ctx, accountMonth, account, month).Scan(&u.Month, &u.Runs, &u.Jobs, &u.Completed, &u.Failed, &u.Canceled)
	return u, err
}

// AddFinished adds the jobs of runs that have just become final to the usage of the months in which they were created.
// It is part of the transaction that finishes them, and locks rows of account_months in the order of accounts and
// months.
func AddFinished(ctx context.Context, tx store.Tx, finished []Run) error {
	// Columns for unnest, one element for each run.
	n := len(finished)
	accounts, created := make([]store.ID, n), make([]time.Time, n)
	completed, failed, canceled := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range finished {
		r := &finished[i]
		accounts[i], created[i] = r.AccountID, r.CreatedAt
		completed[i], failed[i], canceled[i] = int32(r.Completed), int32(r.Failed), int32(r.Canceled)
	}
	_, err := tx.Exec(ctx, addFinished, accounts, created, completed, failed, canceled)
	return err
}

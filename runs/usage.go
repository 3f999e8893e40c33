package runs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A UsageFilter chooses among the usage records. What is nil chooses nothing.
type UsageFilter struct {
	AccountID *store.ID
	From, To  *time.Time // From is included, To is not
}

// MonthlyUsage is what one account has used in one month of UTC.
type MonthlyUsage struct {
	AccountID   store.ID
	AccountName string
	Month       time.Time // its first moment
	Runs        int64
	Jobs        int64
}

// Usage adds up usage by account and month, oldest first.
func Usage(ctx context.Context, pool *pgxpool.Pool, f UsageFilter) (usage []MonthlyUsage, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, monthlyUsage, f.AccountID, f.From, f.To)
		if err != nil {
			return err
		}
		usage, err = pgx.CollectRows(rows, pgx.RowToStructByPos[MonthlyUsage])
		return err
	})
	return usage, err
}

const monthlyUsage = `
SELECT u.account_id, a.name, u.month, u.runs, u.jobs
FROM (
  SELECT account_id, date_trunc('month', created_at, 'UTC') AS month, count(*) AS runs, sum(jobs) AS jobs
  FROM usage_records
  WHERE ($1::uuid IS NULL OR account_id = $1) AND created_at >= COALESCE($2::timestamptz, '-infinity')
    AND created_at < COALESCE($3::timestamptz, 'infinity')
  GROUP BY 1, 2) u
JOIN accounts a ON a.id = u.account_id
ORDER BY u.month, a.name, u.account_id`

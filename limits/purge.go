package limits

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// keepWindows is how long counts are kept: an operator can see a day of them, and a clock that steps back by less than
// a day still finds the counts of its minutes.
const keepWindows = 24 * time.Hour

// Purge deletes the counts of minutes older than a day, one minute at a time so that each transaction is short. It
// returns how many rows it deleted. It deletes nothing and returns a *store.ClockError if the clocks of the process and
// the database disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool) (rows int64, err error) {
	before, err := store.PurgeBefore(ctx, pool, keepWindows)
	if err != nil {
		return 0, err
	}
	for {
		var oldest *time.Time
		if err := pool.QueryRow(ctx, oldestWindow, before).Scan(&oldest); err != nil || oldest == nil {
			return rows, err
		}
		tag, err := pool.Exec(ctx, deleteWindow, oldest)
		if err != nil {
			return rows, err
		}
		rows += tag.RowsAffected()
	}
}

// erase deletes the counts of an account, one credential at a time.
func erase(ctx context.Context, pool *pgxpool.Pool, _ string, account store.ID) (total int64, err error) {
	for n := int64(1); n > 0; total += n {
		err := store.Step(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, eraseCounts, account)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

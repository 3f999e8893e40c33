package insights

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// LockDerived locks the tables as changes of derived rows do. Call it before the transaction takes other locks, because
// an import and a purge lock the tables first.
func LockDerived(ctx context.Context, tx pgx.Tx, account store.ID) error {
	var b pgx.Batch
	b.Queue(touchRecommendations, account)
	b.Queue(touchAlerts, account)
	return tx.SendBatch(ctx, &b).Close()
}

// DetachSchedule ends what was derived for a schedule that the transaction deletes. now is the database's time.
func DetachSchedule(ctx context.Context, tx pgx.Tx, account, schedule store.ID, now time.Time) error {
	var b pgx.Batch
	b.Queue(detachRecommendations, account, schedule, now)
	b.Queue(detachAlerts, account, schedule, now)
	return tx.SendBatch(ctx, &b).Close()
}

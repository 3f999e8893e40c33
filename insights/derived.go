package insights

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// LockDerived takes the locks on the tables that changes of derived rows take, before other locks of the transaction: an import and a
// purge lock the tables first.
func LockDerived(ctx context.Context, tx pgx.Tx, account store.ID) error {
	var b pgx.Batch
	b.Queue(touchRecommendations, account)
	b.Queue(touchAlerts, account)
	return tx.SendBatch(ctx, &b).Close()
}

// DetachSchedule ends what was derived for a schedule that the transaction deletes.
func DetachSchedule(ctx context.Context, tx pgx.Tx, account, schedule store.ID) error {
	var b pgx.Batch
	b.Queue(detachRecommendations, account, schedule)
	b.Queue(detachAlerts, account, schedule)
	return tx.SendBatch(ctx, &b).Close()
}

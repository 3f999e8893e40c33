package insights

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// ForgetDerived deletes what was derived for a schedule. Only sample data uses it.
func ForgetDerived(ctx context.Context, tx pgx.Tx, account, schedule store.ID) error {
	var b pgx.Batch
	b.Queue(`DELETE FROM recommendations WHERE account_id = $1 AND schedule_id = $2`, account, schedule)
	b.Queue(`DELETE FROM alerts WHERE account_id = $1 AND schedule_id = $2`, account, schedule)
	return tx.SendBatch(ctx, &b).Close()
}

// BackdateDerived moves what was derived for a schedule since a time to an earlier one. Only sample data uses it.
func BackdateDerived(ctx context.Context, tx pgx.Tx, account, schedule store.ID, since, at time.Time) error {
	var b pgx.Batch
	b.Queue(backdateRecommendations, account, schedule, since, at)
	b.Queue(backdateAlerts, account, schedule, since, at)
	return tx.SendBatch(ctx, &b).Close()
}

const (
	// A row that was created before $3 keeps its time of creation; only the time of its update moves.
	backdateRecommendations = `
UPDATE recommendations SET created_at = CASE WHEN created_at >= $3 THEN $4 ELSE created_at END, updated_at = $4
WHERE account_id = $1 AND schedule_id = $2 AND updated_at >= $3`

	backdateAlerts = `
UPDATE alerts SET detected_at = CASE WHEN detected_at >= $3 THEN $4 ELSE detected_at END,
  resolved_at = CASE WHEN resolved_at >= $3 THEN $4 ELSE resolved_at END
WHERE account_id = $1 AND schedule_id = $2 AND (detected_at >= $3 OR resolved_at >= $3)`
)

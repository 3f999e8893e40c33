package insights

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/jsonl"
)

// Admin carries out what an operator asks for. Every change is written to audit_log in its own transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // who asks
	NewID func() store.ID
}

// Imported tells how many lines of each kind an import held.
type Imported struct {
	Recommendations, Alerts int
}

// Import reads a JSON Lines file of recommendations and alerts, in any order, and writes all of it or, when any line is
// wrong, nothing. One whose id is there already is changed to what the file says, so that importing a file twice changes
// nothing the second time; a line without an id is a new one each time. progress is told of each line read; it may be nil.
func (a *Admin) Import(ctx context.Context, file io.Reader, progress func(lines int)) (Imported, error) {
	in := newIncoming(a.NewID)
	err := jsonl.Read(file, func(l *jsonl.Line) {
		if progress != nil {
			progress(l.Number)
		}
		in.add(l)
	})
	if err != nil {
		return Imported{}, err
	}
	n := Imported{in.recommendations.Len(), in.alerts.Len()}
	err = store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockTables); err != nil {
			return err
		}
		recommendations, err := in.recommendations.Merge(ctx, tx, upsertRecommendations)
		if err != nil {
			return err
		}
		alerts, err := in.alerts.Merge(ctx, tx, upsertAlerts)
		if err != nil || recommendations+alerts == 0 {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: "insights.import", Subject: "insights", Detail: map[string]any{
			"recommendations": n.Recommendations, "alerts": n.Alerts, "rows_changed": recommendations + alerts,
		}})
	})
	if err != nil {
		return Imported{}, err
	}
	return n, nil
}

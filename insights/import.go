package insights

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/jsonl"
)

// Admin imports insights for an operator. Each import adds a row to audit_log in the same transaction.
type Admin struct {
	Pool   *pgxpool.Pool
	Actor  string // the operator, for audit_log
	Events EventData
	Record events.RecorderOfMany
}

// Imported counts the lines of each kind in an imported file.
type Imported struct {
	Recommendations, Alerts int
}

// Import reads a JSON Lines file of recommendations and alerts, in any order. It adds rows and changes existing ones,
// found by id, to match the file; each line without an id adds a row. If any line is invalid, it changes nothing and
// its error lists the lines. It records an event for each recommendation that becomes suggested and each alert that
// becomes open. progress, which may be nil, is called with the number of lines read so far.
func (a *Admin) Import(ctx context.Context, file io.Reader, progress func(lines int)) (Imported, error) {
	in := newIncoming()
	if err := jsonl.Read(file, progress, in.add); err != nil {
		return Imported{}, err
	}
	if err := store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error { return a.write(ctx, tx, in) }); err != nil {
		return Imported{}, err
	}
	return in.count(), nil
}

// write does everything that an import changes, in its transaction.
func (a *Admin) write(ctx context.Context, tx pgx.Tx, in *incoming) error {
	// Sending the rows may take long, so the tables are locked only after it.
	if err := jsonl.Copy(ctx, tx, &in.recommendations, &in.alerts); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, lockTables); err != nil {
		return err
	}
	// newEvents needs the state before Merge changes it.
	active, err := in.newEvents(ctx, tx)
	if err != nil {
		return err
	}
	recommendations, err := in.recommendations.Merge(ctx, tx, upsertRecommendations)
	if err != nil {
		return err
	}
	alerts, err := in.alerts.Merge(ctx, tx, upsertAlerts)
	if err != nil {
		return err
	}
	// A file that changes nothing causes no events: what it would make active is active already.
	if recommendations+alerts == 0 {
		return nil
	}
	n := in.count()
	err = store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: "insights.import", Subject: "insights", Detail: map[string]any{
		"recommendations": n.Recommendations, "alerts": n.Alerts, "rows_changed": recommendations + alerts,
	}})
	if err != nil {
		return err
	}
	return a.record(ctx, tx, active)
}

package jobs

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// writePauses pauses the providers that were reported unavailable, and records each pause that took effect in the audit
// log. The first report wins: a provider that is already paused stays as it is.
func (l *ledger) writePauses(ctx context.Context, tx store.Tx) error {
	if len(l.pauses) == 0 {
		return nil
	}
	codes := slices.Sorted(maps.Keys(l.pauses))
	var reasons, messages, workers []string
	for _, code := range codes {
		p := l.pauses[code]
		reasons, messages, workers = append(reasons, p.reason), append(messages, p.message), append(workers, p.worker.Text("wrk"))
	}
	type pausedProvider struct{ Provider, Reason, Message, Worker string }
	paused, err := store.Collect(ctx, tx, pgx.RowToStructByPos[pausedProvider], pauseUnavailable, codes, reasons, messages, workers)
	if err != nil {
		return err
	}
	for _, p := range paused {
		change := store.Change{Actor: p.Worker, Action: "providers.unavailable", Subject: p.Provider,
			Detail: map[string]any{"reason": p.Reason, "message": p.Message}}
		if err := store.Audit(ctx, tx, change); err != nil {
			return err
		}
	}
	return nil
}

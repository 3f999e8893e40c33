package schedules

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights"
	"aiv/store"
)

// A Past is a due time of the past that sample data gives to a schedule, with its final run.
type Past struct {
	DueAt       time.Time
	Run         store.ID
	EvaluatedAt time.Time
}

// Backdate gives a schedule occurrences of the past, oldest first, and evaluates their runs as if each were evaluated
// at its time. Its earlier occurrences and what was derived from them are deleted. Only sample data uses it.
func (s *Scheduler) Backdate(ctx context.Context, account, id store.ID, past []Past) error {
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := insights.ForgetDerived(ctx, tx, account, id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM schedule_occurrences WHERE account_id = $1 AND schedule_id = $2`, account, id)
		return err
	})
	for _, p := range past {
		if err == nil {
			err = s.backdate(ctx, account, id, p)
		}
	}
	return err
}

// backdate adds one occurrence, evaluates its run now, and then moves what was derived to the time of p.
func (s *Scheduler) backdate(ctx context.Context, account, id store.ID, p Past) error {
	if _, err := s.cfg.Pool.Exec(ctx, addPast, account, id, p.DueAt, p.Run); err != nil {
		return err
	}
	// What is derived from here on belongs to this evaluation.
	began, err := store.Now(ctx, s.cfg.Pool)
	if err != nil {
		return err
	}
	if _, err := s.evaluate(ctx, waiting{account, id, p.DueAt, p.Run}); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := insights.BackdateDerived(ctx, tx, account, id, began, p.EvaluatedAt); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, backdateOccurrence, account, id, p.DueAt, p.Run, p.EvaluatedAt)
		return err
	})
}

const (
	addPast = `
INSERT INTO schedule_occurrences (account_id, schedule_id, due_at, last_due_at, count, status, run_id, created_at)
VALUES ($1, $2, $3, $3, 1, 'created', $4, $3)`

	backdateOccurrence = `
WITH occurrence AS (
  UPDATE schedule_occurrences SET evaluated_at = $5 WHERE account_id = $1 AND schedule_id = $2 AND due_at = $3
)
UPDATE schedules SET last_due_at = $3, last_run_id = $4 WHERE account_id = $1 AND id = $2`
)

package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// Admin lists, pauses and resumes schedules for an operator. Each change adds a row to audit_log in the same
// transaction.
type Admin struct {
	Config
	Actor string // the operator, for audit_log
}

// An AdminSchedule is a schedule with what became of its latest due time.
type AdminSchedule struct {
	Schedule
	LastStatus *string // nil: it has no occurrence
	LastCode   *string
}

// List returns the schedules of an account, or of all accounts if it is nil, the longest due first. An empty status
// selects all.
func (a *Admin) List(ctx context.Context, account *store.ID, status string) ([]AdminSchedule, error) {
	return store.Collect(ctx, a.Pool, pgx.RowToStructByPos[AdminSchedule], listForOperator, account, status)
}

// ErrByCustomer means that a customer paused the schedule, and only a customer can resume it.
var ErrByCustomer = errors.New("its customer paused the schedule")

// Pause pauses a schedule, so that only an operator can resume it.
func (a *Admin) Pause(ctx context.Context, id store.ID, note string) (*AdminSchedule, error) {
	return a.change(ctx, id, "schedules.pause", note, func(s *Schedule) error {
		s.pause(ByOperator)
		return nil
	})
}

// Resume ends a pause, except a customer's. The schedule acts for the same credential as before.
func (a *Admin) Resume(ctx context.Context, id store.ID, note string) (*AdminSchedule, error) {
	return a.change(ctx, id, "schedules.resume", note, func(s *Schedule) error {
		if s.Status == Paused && *s.PausedReason == ByCustomer {
			return ErrByCustomer
		}
		// The refusals before the pause do not count again.
		s.Status, s.PausedReason, s.Refused = Active, nil, 0
		return nil
	})
}

// change changes a schedule of any account. It returns ErrNotFound.
func (a *Admin) change(ctx context.Context, id store.ID, action, note string, f func(*Schedule) error) (changed *AdminSchedule, err error) {
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		var account store.ID
		err := tx.QueryRow(ctx, `SELECT account_id FROM schedules WHERE id = $1`, id).Scan(&account)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		// The same lock as a change by the customer and as a due time that is being carried out.
		before, err := one(ctx, tx, getSchedule+" FOR NO KEY UPDATE", account, id)
		if err != nil {
			return err
		}
		after := before.Schedule
		if err := f(&after); err != nil {
			return err
		}
		if err := after.setNext(&before.Schedule, before.Now); err != nil {
			return err
		}
		updated, err := update(ctx, tx, &after, before.Now)
		if err != nil {
			return err
		}
		err = store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: id.Text("sched"), Detail: map[string]any{
			"account": account.Text("acct"), "note": note, "paused_reason": updated.PausedReason,
		}})
		if err != nil {
			return err
		}
		if err := a.recordPause(ctx, tx, &before.Schedule, updated); err != nil {
			return err
		}
		changed = &AdminSchedule{Schedule: updated.Schedule}
		return tx.QueryRow(ctx, latestOccurrence, account, id).Scan(&changed.LastStatus, &changed.LastCode)
	})
	return changed, err
}

// A Backlog describes the work that waits for a Scheduler.
type Backlog struct {
	Active        int64
	Paused        map[string]int64 // by reason
	Lag           time.Duration    // how long the longest due schedule has been due
	Waiting       int64            // final runs that are not evaluated
	EvaluationLag time.Duration    // since the first of them became final
}

// ReadBacklog reads the backlog of all accounts.
func ReadBacklog(ctx context.Context, db store.Querier) (b Backlog, err error) {
	b.Paused = make(map[string]int64)
	rows, err := db.Query(ctx, countByStatus)
	if err != nil {
		return b, err
	}
	var reason *string
	var n int64
	var lag, evaluationLag float64
	if _, err = pgx.ForEachRow(rows, []any{&reason, &n, &lag}, func() error {
		// Only active schedules have no reason.
		if reason == nil {
			b.Active, b.Lag = n, time.Duration(lag*float64(time.Second))
		} else {
			b.Paused[*reason] = n
		}
		return nil
	}); err != nil {
		return b, err
	}
	err = db.QueryRow(ctx, countWaiting).Scan(&b.Waiting, &evaluationLag)
	b.EvaluationLag = time.Duration(evaluationLag * float64(time.Second))
	return b, err
}

const (
	listForOperator = `
SELECT ` + columnsOfSchedule + `, o.status, o.code` + withLatestOccurrence + `
WHERE ($1::uuid IS NULL OR s.account_id = $1) AND ($2 = '' OR s.status = $2)
ORDER BY s.next_at NULLS LAST, s.account_id, s.id`

	latestOccurrence = `SELECT o.status, o.code` + withLatestOccurrence + ` WHERE s.account_id = $1 AND s.id = $2`

	// withLatestOccurrence joins each schedule with the occurrence of its latest due time, by their last_due_at.
	withLatestOccurrence = `
FROM schedules s LEFT JOIN schedule_occurrences o ON o.account_id = s.account_id AND o.schedule_id = s.id AND o.last_due_at = s.last_due_at`

	// columnsOfSchedule are columns with the alias s.
	columnsOfSchedule = `s.account_id, s.id, s.name, s.status, s.paused_reason, s.cadence, s.at_minute, s.weekday, s.day, s.time_zone, s.model_ids,
  s.question_ids, s.repetitions, s.measurement_type, s.locale, s.country, s.language, s.min_change, s.next_at, s.last_due_at, s.last_run_id,
  s.credential_id, s.refused, s.created_at, s.updated_at`

	// countByStatus returns the number of schedules by reason (NULL: active), and for how many seconds the earliest has
	// been due. Paused schedules have no due time.
	countByStatus = `
SELECT paused_reason, count(*), GREATEST(extract(epoch FROM now() - min(next_at)), 0)::double precision
FROM schedules GROUP BY paused_reason`

	countWaiting = `
SELECT count(*), GREATEST(extract(epoch FROM now() - min(r.finished_at)), 0)::double precision
FROM schedule_occurrences o JOIN measurement_runs r ON r.account_id = o.account_id AND r.id = o.run_id
WHERE o.run_id IS NOT NULL AND o.evaluated_at IS NULL AND r.finished_at IS NOT NULL`
)

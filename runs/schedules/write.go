package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights"
	"aiv/insights/events"
	"aiv/store"
)

// EventData encodes what events carry, as the API returns it.
type EventData interface {
	Schedule(*Listed) []byte
	Occurrence(*Occurrence) []byte
}

// Config contains what Schedules depends on.
type Config struct {
	Pool   *pgxpool.Pool
	NewID  func() store.ID
	Record events.Recorder
	Events EventData
}

// Schedules creates, changes and deletes schedules for customers.
type Schedules struct{ cfg Config }

// New returns a Schedules.
func New(cfg Config) *Schedules { return &Schedules{cfg} }

// Create adds an active schedule that acts for a credential. The caller has checked the rule and the run. Create
// returns an *ExistsError or ErrTooMany.
func (s *Schedules) Create(ctx context.Context, account, credential store.ID, c Change) (made *Listed, err error) {
	sch := Schedule{AccountID: account, ID: s.cfg.NewID(), Status: Active, CredentialID: credential}
	c.apply(&sch)
	clock, err := sch.Rule.Clock()
	if err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		// The lock makes the bound and the check of the name exact among new schedules.
		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}
		if err := checkName(ctx, tx, account, sch.Name); err != nil {
			return err
		}
		var n int
		var now time.Time
		if err := tx.QueryRow(ctx, countSchedules, account).Scan(&n, &now); err != nil {
			return err
		}
		if n >= MaxSchedules {
			return ErrTooMany
		}
		sch.NextAt, sch.CreatedAt, sch.UpdatedAt = new(clock.After(now)), now, now
		made, err = one(ctx, tx, insertSchedule, sch.AccountID, sch.ID, sch.Name, sch.Status, sch.PausedReason, sch.Cadence, sch.At, sch.Weekday,
			sch.Day, sch.Zone, sch.ModelIDs, sch.QuestionIDs, sch.Repetitions, sch.MeasurementType, sch.Locale, sch.Country, sch.Language,
			int64(sch.MinChange), sch.NextAt, sch.CredentialID, now)
		return err
	})
	if store.IsUniqueViolation(err) { // a schedule was renamed in between
		return nil, s.nameConflict(ctx, account, sch.Name, err)
	}
	return made, err
}

// Merge returns a schedule with a change, or ErrNotFound or an *InvalidError. It changes nothing.
func (s *Schedules) Merge(ctx context.Context, account, id store.ID, c Change) (*Schedule, error) {
	found, err := Get(ctx, s.cfg.Pool, account, id)
	if err != nil {
		return nil, err
	}
	c.apply(&found.Schedule)
	if faults := found.Rule.Faults(); len(faults) > 0 {
		return nil, &InvalidError{faults}
	}
	return &found.Schedule, nil
}

// Update changes a schedule, which acts for the credential from then on. It returns ErrNotFound, an *InvalidError, an
// *ExistsError or ErrOperator.
func (s *Schedules) Update(ctx context.Context, account, id, credential store.ID, c Change) (changed *Listed, err error) {
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		before, err := one(ctx, tx, getSchedule+" FOR NO KEY UPDATE", account, id)
		if err != nil {
			return err
		}
		// A shallow copy: apply replaces pointers and lists, and does not change what they refer to.
		after := *before
		if c.apply(&after.Schedule); len(after.Rule.Faults()) > 0 {
			return &InvalidError{after.Rule.Faults()}
		}
		if after.Name != before.Name {
			if err := checkName(ctx, tx, account, after.Name); err != nil {
				return err
			}
		}
		// Any change by the customer ends a series of refusals.
		if after.CredentialID, after.Refused = credential, 0; c.Status != nil {
			if err := after.setStatus(*c.Status); err != nil {
				return err
			}
		}
		if err := after.setNext(&before.Schedule, before.Now); err != nil {
			return err
		}
		if changed, err = update(ctx, tx, &after.Schedule, before.Now); err != nil {
			return err
		}
		return s.cfg.recordPause(ctx, tx, &before.Schedule, changed)
	})
	if store.IsUniqueViolation(err) {
		return nil, s.nameConflict(ctx, account, *c.Name, err)
	}
	return changed, err
}

// setStatus pauses or resumes a schedule for a customer.
func (s *Schedule) setStatus(status string) error {
	switch {
	case status == s.Status:
	case status == Paused:
		s.pause(ByCustomer)
	// Only an operator ends the pause of an operator.
	case *s.PausedReason == ByOperator:
		return ErrOperator
	default:
		s.Status, s.PausedReason = Active, nil
	}
	return nil
}

func (s *Schedule) pause(reason string) { s.Status, s.PausedReason, s.NextAt = Paused, &reason, nil }

// setNext sets the next due time after a change at now. A due time that has passed stays: it is about to be carried
// out.
func (s *Schedule) setNext(before *Schedule, now time.Time) error {
	switch {
	case s.Status == Paused:
		s.NextAt = nil
		return nil
	// The time stays if the rule does, or if it is due.
	case before.Status == Active && (s.Rule.equal(&before.Rule) || !before.NextAt.After(now)):
		return nil
	}
	clock, err := s.Rule.Clock()
	if err != nil {
		return err
	}
	// The clock was ahead when the last due time was carried out, which must not come twice.
	if s.LastDueAt != nil && s.LastDueAt.After(now) {
		now = *s.LastDueAt
	}
	s.NextAt = new(clock.After(now))
	return nil
}

// update writes all members of a schedule that a customer or an operator can change.
func update(ctx context.Context, tx pgx.Tx, s *Schedule, now time.Time) (*Listed, error) {
	return one(ctx, tx, updateSchedule, s.AccountID, s.ID, s.Name, s.Status, s.PausedReason, s.Cadence, s.At, s.Weekday, s.Day, s.Zone,
		s.ModelIDs, s.QuestionIDs, s.Repetitions, s.MeasurementType, s.Locale, s.Country, s.Language, int64(s.MinChange), s.NextAt,
		s.CredentialID, s.Refused, now)
}

// recordPause records the event of a schedule that was active and is paused.
func (c *Config) recordPause(ctx context.Context, tx pgx.Tx, before *Schedule, after *Listed) error {
	if before.Status != Active || after.Status != Paused {
		return nil
	}
	return c.Record(ctx, tx, []events.Cause{c.paused(after)})
}

func (c *Config) paused(s *Listed) events.Cause {
	return events.Cause{AccountID: s.AccountID, ID: c.NewID(), Type: events.SchedulePaused, SubjectID: s.ID, Data: c.Events.Schedule(s)}
}

// Delete deletes a schedule with its occurrences. Its open alerts are resolved and its open recommendations done. Its
// runs stay.
func (s *Schedules) Delete(ctx context.Context, account, id store.ID) error {
	return pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := insights.LockDerived(ctx, tx, account); err != nil {
			return err
		}
		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}
		// The schedule is locked last. The locks before it are taken in the order of an evaluation.
		deleted, err := one(ctx, tx, getSchedule+" FOR UPDATE", account, id)
		if err != nil {
			return err
		}
		if err := insights.DetachSchedule(ctx, tx, account, id, deleted.Now); err != nil {
			return err
		}
		var b pgx.Batch
		b.Queue(`DELETE FROM schedule_occurrences WHERE account_id = $1 AND schedule_id = $2`, account, id)
		b.Queue(`DELETE FROM schedules WHERE account_id = $1 AND id = $2`, account, id)
		b.Queue(raiseVersion, account)
		return tx.SendBatch(ctx, &b).Close()
	})
}

// lockAccount locks the row of an account in schedule_accounts. It adds the row if the account has none.
func lockAccount(ctx context.Context, tx pgx.Tx, account store.ID) error {
	var b pgx.Batch
	b.Queue(`INSERT INTO schedule_accounts (account_id) VALUES ($1) ON CONFLICT DO NOTHING`, account)
	b.Queue(`SELECT FROM schedule_accounts WHERE account_id = $1 FOR NO KEY UPDATE`, account)
	return tx.SendBatch(ctx, &b).Close()
}

// checkName returns an *ExistsError if another schedule of the account has the name.
func checkName(ctx context.Context, db store.Querier, account store.ID, name string) error {
	var other store.ID
	err := db.QueryRow(ctx, `SELECT id FROM schedules WHERE account_id = $1 AND name = $2`, account, name).Scan(&other)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &ExistsError{other}
}

// nameConflict returns an *ExistsError for a name that violates the unique index. If the other schedule is gone, it
// returns the error of the index.
func (s *Schedules) nameConflict(ctx context.Context, account store.ID, name string, refused error) error {
	if err := checkName(ctx, s.cfg.Pool, account, name); err != nil {
		return err
	}
	return errors.Join(store.ErrContended, refused)
}

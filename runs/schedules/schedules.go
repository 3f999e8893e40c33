// Package schedules creates recurring runs, at due times.
//
// It owns the tables schedules, schedule_occurrences and schedule_accounts. The gateway calls it for the routes under
// /v1/schedules. Command aiv dispatch calls a [Scheduler]: it carries out due times, and when a scheduled run is final
// it has package insights derive alerts and recommendations from it. Command aiv schedules lists, pauses and resumes
// schedules.
//
// # Exactly once
//
// One transaction carries out a due time, under the lock of the schedule's row: it writes the occurrence, the run, and
// the next due time. The due time is part of the key of an occurrence, and next_at alone determines what is due. So
// processes may end at any time, and any number of them may run. An evaluation is also one transaction, which sets
// evaluated_at of the occurrence.
package schedules

import (
	"context"
	"errors"
	"time"

	"aiv/insights/visibility"
	"aiv/store"
)

// A Schedule creates runs. Its fields are in the order of columns.
type Schedule struct {
	AccountID    store.ID
	ID           store.ID
	Name         string
	Status       string  // Active or Paused
	PausedReason *string // set if and only if it is paused
	Rule
	RunTerms
	MinChange    visibility.Decimal // the smallest difference of a rate that opens an alert
	NextAt       *time.Time         // nil if and only if it is paused
	LastDueAt    *time.Time         // of the latest occurrence
	LastRunID    *store.ID          // the latest run that was created, until it is purged
	CredentialID store.ID           // of the latest change by a customer
	Refused      int                // the latest occurrences in a row that a run check refused
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// RunTerms are the parameters of a schedule's runs, as in runs.Proposal.
type RunTerms struct {
	ModelIDs        []string
	QuestionIDs     []string
	Repetitions     int64
	MeasurementType string
	Locale          string
	Country         string
	Language        string
}

// The statuses of a schedule.
const (
	Active = "active"
	Paused = "paused"
)

// Statuses lists them.
var Statuses = []string{Active, Paused}

// The reasons of a pause.
const (
	ByCustomer          = "customer"
	ByOperator          = "operator"
	CredentialRevoked   = "credential_revoked"
	CredentialDisabled  = "credential_disabled"
	CredentialExpired   = "credential_expired"
	InsufficientScope   = "insufficient_scope"
	EntitlementRequired = "entitlement_required"
	RefusedTooOften     = "refused" // by run checks, maxRefused times in a row
)

// The statuses of an occurrence.
const (
	OccurrenceCreated = "created"
	OccurrenceSkipped = "skipped"
)

// Codes of occurrences that were skipped, besides the reasons of a pause and the codes of run checks.
const (
	codeMissed           = "missed"  // several due times had passed; only the latest had a run
	codeOverlap          = "overlap" // the run before is not final
	codeJobQuotaExceeded = "job_quota_exceeded"
)

// Bounds of the schedules of an account.
const (
	MaxName      = 120 // characters
	MaxSchedules = 100
)

const (
	requiredScope     = "runs:write" // of the credential for which a schedule acts
	maxRefused        = 5            // refusals in a row after which a schedule is paused
	maxDetailedFaults = 5            // of a run check, in an occurrence
	shownTimes        = 5            // due times that customers see
	occurrencesKept   = 400 * 24 * time.Hour
)

// OccurrenceStatuses lists the statuses of an occurrence.
var OccurrenceStatuses = []string{OccurrenceCreated, OccurrenceSkipped}

// PausedReasons lists the reasons of a pause.
var PausedReasons = []string{ByCustomer, ByOperator, CredentialRevoked, CredentialDisabled, CredentialExpired, InsufficientScope,
	EntitlementRequired, RefusedTooOften}

// An Occurrence is what became of a due time, or of several in a row that were missed. Its fields are in the order of
// columns.
type Occurrence struct {
	ScheduleID  store.ID
	DueAt       time.Time
	LastDueAt   time.Time
	Count       int     // due times from DueAt to LastDueAt
	Status      string  // one of OccurrenceStatuses
	Code        *string // why it was skipped
	Detail      *string
	RunID       *store.ID // nil if it was skipped or the run is purged
	CreatedAt   time.Time
	EvaluatedAt *time.Time // nil: the run is not evaluated
}

// Errors on which callers decide. None contains an id.
var (
	ErrNotFound = errors.New("the account has no such schedule")
	ErrTooMany  = errors.New("the account has the maximum number of schedules")
	ErrOperator = errors.New("the schedule was paused by an operator")
)

// An ExistsError reports the account's schedule that has the name.
type ExistsError struct{ ID store.ID }

func (e *ExistsError) Error() string { return "the account has a schedule with this name" }

// NextTimes returns the due times after t that customers see.
func (s *Schedule) NextTimes(t time.Time) ([]time.Time, error) {
	c, err := s.Rule.Clock()
	if err != nil {
		return nil, err
	}
	return c.Times(t, shownTimes), nil
}

// purge deletes occurrences whose last due time is old, in small steps. It keeps the latest one of a schedule, its
// latest one with a run, and those whose run is not evaluated.
func (s *Scheduler) purge(ctx context.Context) error {
	before, err := store.PurgeBefore(ctx, s.cfg.Pool, occurrencesKept)
	if err == nil {
		_, err = store.ExecInSteps(ctx, s.cfg.Pool, purgeStep, purgeOccurrences, before)
	}
	return err
}

// One transaction deletes up to purgeStep rows.
const purgeStep = 1000

const purgeOccurrences = `
DELETE FROM schedule_occurrences d USING (
  SELECT o.account_id, o.schedule_id, o.due_at FROM schedule_occurrences o
  JOIN schedules s ON s.account_id = o.account_id AND s.id = o.schedule_id
  WHERE o.last_due_at < $1 AND o.last_due_at < s.last_due_at AND (o.run_id IS NULL OR o.evaluated_at IS NOT NULL)
    AND (o.status = 'skipped' OR EXISTS (
      SELECT FROM schedule_occurrences l
      WHERE l.account_id = o.account_id AND l.schedule_id = o.schedule_id AND l.status = 'created' AND l.due_at > o.due_at))
  ORDER BY o.last_due_at LIMIT $2) old
WHERE d.account_id = old.account_id AND d.schedule_id = old.schedule_id AND d.due_at = old.due_at`

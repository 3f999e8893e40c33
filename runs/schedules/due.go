package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/catalog"
	"aiv/idempotency"
	"aiv/insights/events"
	"aiv/runs"
	"aiv/store"
)

// carryOut carries out the due times of a schedule up to now, in one transaction. It does nothing if another process has
// locked the schedule, or if it is no longer due. An error is temporary: nothing has changed.
func (s *Scheduler) carryOut(ctx context.Context, account, id store.ID) error {
	var done []Occurrence
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		done = nil
		if _, err := tx.Exec(ctx, `SELECT `+store.BoundIdle); err != nil {
			return err
		}
		// The lock lasts until the commit, and makes the occurrence, the run and the next due time one step.
		sch, err := one(ctx, tx, lockDue, account, id)
		// The schedule is locked, or was deleted, paused or carried out since the round was read.
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		clock, err := sch.Rule.Clock()
		if err != nil {
			return err
		}
		// Only the latest due time gets a run; earlier ones are recorded as missed.
		span := clock.Span(*sch.NextAt, sch.Now)
		d := &decision{Scheduler: s, tx: tx, schedule: sch, due: span.Last}
		if err := d.decide(ctx); err != nil {
			return err
		}
		done, err = d.write(ctx, span)
		return err
	})
	if err == nil {
		s.count(done)
	}
	return err
}

// A decision decides what becomes of a due time of a schedule, whose row the transaction has locked.
type decision struct {
	*Scheduler
	tx       pgx.Tx
	schedule *Listed   // with the time of the database at which it was locked
	due      time.Time // the latest due time

	run          *store.ID // that was created
	code, detail string    // why it is skipped; empty: a run was created
	pause        string    // the reason of a pause; empty: none
	refused      bool      // a run check refused the run, and it counts
}

// skip notes why there is no run. Customers see the code and the detail.
func (d *decision) skip(code, format string, args ...any) {
	d.code, d.detail = code, fmt.Sprintf(format, args...)
}

// decide finds the first reason to skip the due time, or creates its run.
func (d *decision) decide(ctx context.Context) error {
	sch := d.schedule
	acting, err := auth.ReadActing(ctx, d.tx, sch.AccountID, sch.CredentialID)
	if err != nil {
		return err
	}
	c := acting.Credential
	switch {
	case c == nil:
		d.skip("credential_"+acting.State, "The credential %s is %s.", acting.ID.Text("cred"), acting.State)
	case !c.HasScope(requiredScope):
		d.skip(InsufficientScope, "The credential %s lacks the scope %s.", c.ID.Text("cred"), requiredScope)
	case !c.Plan.Entitled(auth.APIAccess):
		d.skip(EntitlementRequired, "The plan %s does not include %s.", c.Plan.Code, auth.APIAccess)
	}
	if d.code != "" {
		// These causes do not pass by themselves, so the schedule is paused. Each code is also a reason of a pause.
		d.pause = d.code
		return nil
	}
	if open, err := d.lastRunIsOpen(ctx); err != nil || open {
		return err
	}
	return d.create(ctx, c)
}

// lastRunIsOpen skips the due time if the latest run is not final. A run that was purged is final.
func (d *decision) lastRunIsOpen(ctx context.Context) (bool, error) {
	last := d.schedule.LastRunID
	if last == nil {
		return false, nil
	}
	var status string
	err := d.tx.QueryRow(ctx, runStatus, d.schedule.AccountID, *last).Scan(&status)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && status != "queued" && status != "running" {
		return false, nil
	}
	d.skip(codeOverlap, "The run of an earlier due time, %s, is %s.", last.Text("run"), status)
	return true, err
}

// create creates the run as POST /v1/runs does, or skips the due time.
func (d *decision) create(ctx context.Context, c *auth.Credential) error {
	sch := d.schedule
	p := &runs.Proposal{
		Orderer: runs.OrdererOf(c), ModelIDs: sch.ModelIDs, QuestionIDs: sch.QuestionIDs, Repetitions: sch.Repetitions,
		MeasurementType: sch.MeasurementType, Locale: sch.Locale, Country: sch.Country, Language: sch.Language,
	}
	// The checks read the catalog on another connection, in this revision or a later one.
	if err := d.tx.QueryRow(ctx, `SELECT `+catalog.RevisionSQL).Scan(&p.CatalogRevision); err != nil {
		return err
	}
	methodology, err := d.cfg.Runs.Check(ctx, p)
	if refusal, ok := errors.AsType[*runs.Refusal](err); ok {
		d.refuse(refusal)
		return nil
	}
	if err != nil {
		return err
	}
	// No request of a customer has this route, so the key cannot equal the key of a customer.
	result, err := d.cfg.Runs.CreateTx(ctx, d.tx, &runs.CreateRequest{
		Proposal: p, Operation: idempotency.Operation{Method: "POST", Route: "/v1/schedules/" + sch.ID.Text("sched")},
		Key: d.due.UTC().Format(time.RFC3339), Response: d.cfg.Response,
	}, methodology)
	// A due time beyond the quota is skipped, and the schedule stays active.
	if quota, ok := errors.AsType[*runs.QuotaError](err); ok {
		d.skip(codeJobQuotaExceeded, "%s", quota.Detail())
		return nil
	}
	if err == nil {
		d.run = &result.RunID
	}
	return err
}

// refuse skips the due time because of a run check. A refusal because of what a provider lacks does not count: the
// customer cannot change that.
func (d *decision) refuse(r *runs.Refusal) {
	var details []string
	for _, f := range r.Faults[:min(len(r.Faults), maxDetailedFaults)] {
		details = append(details, "/run"+f.Pointer+": "+f.Detail)
	}
	// The code of the first fault, as in a response to a customer.
	d.skip(r.Faults[0].Code, "%s", strings.Join(details, "; "))
	switch d.code {
	case "grounded_search_unavailable", "provider_unavailable":
	default:
		d.refused = true
		// This refusal is not counted in the schedule yet; write adds it.
		if d.schedule.Refused+1 >= maxRefused {
			d.pause = RefusedTooOften
		}
	}
}

// write writes the occurrences, the schedule and the events, and returns the occurrences.
func (d *decision) write(ctx context.Context, span Span) (written []Occurrence, err error) {
	sch := d.schedule
	add := func(o Occurrence) error {
		added, err := store.ReadOne[Occurrence](ctx, d.tx, nil, insertOccurrence, sch.AccountID, sch.ID, o.DueAt, o.LastDueAt, o.Count,
			o.Status, o.Code, o.Detail, o.RunID, sch.Now)
		if err == nil {
			written = append(written, *added)
		}
		return err
	}
	// One occurrence for all due times before the latest.
	if missed := span.Count - 1; missed > 0 {
		detail := fmt.Sprintf("%d due times passed before they could be carried out.", missed)
		if missed == 1 {
			detail = "The due time passed before it could be carried out."
		}
		if err := add(Occurrence{DueAt: *sch.NextAt, LastDueAt: span.NextToLast, Count: missed, Status: OccurrenceSkipped, Code: new(codeMissed), Detail: &detail}); err != nil {
			return nil, err
		}
	}
	o := Occurrence{DueAt: d.due, LastDueAt: d.due, Count: 1, Status: OccurrenceCreated, RunID: d.run}
	if d.code != "" {
		o.Status, o.Code, o.Detail = OccurrenceSkipped, &d.code, &d.detail
	}
	if err := add(o); err != nil {
		return nil, err
	}
	// A copy with the changes: the next due time, and what the decision changes.
	after := sch.Schedule
	after.NextAt, after.LastDueAt = &span.Next, &d.due
	switch {
	case d.run != nil:
		// A run ends a series of refusals.
		after.LastRunID, after.Refused = d.run, 0
	case d.refused:
		after.Refused++
	}
	if d.pause != "" {
		after.pause(d.pause)
	}
	changed, err := one(ctx, d.tx, carriedOut, sch.AccountID, sch.ID, after.Status, after.PausedReason, after.NextAt, after.LastDueAt,
		after.LastRunID, after.Refused, updatedAt(&sch.Schedule, d.pause, sch.Now), sch.Now)
	if err != nil {
		return nil, err
	}
	return written, d.record(ctx, written, changed)
}

// updatedAt is when a schedule was last changed: a pause changes it, and carrying out a due time does not.
func updatedAt(s *Schedule, pause string, now time.Time) time.Time {
	if pause == "" {
		return s.UpdatedAt
	}
	return now
}

// record records the events of occurrences that were skipped, and of a pause.
func (d *decision) record(ctx context.Context, written []Occurrence, changed *Listed) error {
	var causes []events.Cause
	for i := range written {
		if o := &written[i]; o.Status == OccurrenceSkipped {
			causes = append(causes, events.Cause{AccountID: changed.AccountID, ID: d.cfg.NewID(), Type: events.ScheduleSkipped,
				SubjectID: changed.ID, Data: d.cfg.Events.Occurrence(o)})
		}
	}
	if d.pause != "" {
		causes = append(causes, d.cfg.paused(changed))
	}
	return d.cfg.Record(ctx, d.tx, causes)
}

package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"aiv/gateway/problem"
	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
)

// scheduleDocument is the response of GET /v1/schedules/{id} and an item of GET /v1/schedules.
type scheduleDocument struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Status       string         `json:"status"`
	PausedReason *string        `json:"paused_reason"`
	Cadence      string         `json:"cadence"`
	At           string         `json:"at"`      // HH:MM in the time zone; hourly: the minute
	Weekday      *string        `json:"weekday"` // of a weekly schedule
	Day          *int           `json:"day"`     // of a monthly schedule
	TimeZone     string         `json:"time_zone"`
	Run          newRun         `json:"run"`
	Alerts       scheduleAlerts `json:"alerts"`
	NextAt       *string        `json:"next_at"`     // null while it is paused
	NextTimes    []string       `json:"next_times"`  // the next due times, even while it is paused
	LastDueAt    *string        `json:"last_due_at"` // null before the first due time
	LastRunID    *string        `json:"last_run_id"`
	CredentialID string         `json:"credential_id"` // for which the schedule acts
	CreatedAt    string         `json:"created_at"`
	UpdatedAt    string         `json:"updated_at"`
}

// scheduleAlerts has the smallest difference of a rate that opens an alert.
type scheduleAlerts struct {
	MinChange visibility.Decimal `json:"min_change"`
}

// newScheduleDocument shows the due times after a time.
func newScheduleDocument(s *schedules.Schedule, after time.Time) scheduleDocument {
	d := scheduleDocument{
		ID: s.ID.Text("sched"), Name: s.Name, Status: s.Status, PausedReason: s.PausedReason, Cadence: s.Cadence, At: s.AtText(),
		Weekday: s.Weekday, Day: s.Day, TimeZone: s.Zone,
		Run:    newRun{s.ModelIDs, s.QuestionIDs, int(s.Repetitions), s.MeasurementType, s.Locale, s.Country, s.Language},
		Alerts: scheduleAlerts{s.MinChange}, NextAt: store.FormatTimeOrNil(s.NextAt), NextTimes: []string{},
		LastDueAt: store.FormatTimeOrNil(s.LastDueAt), LastRunID: idOrNull("run", s.LastRunID), CredentialID: s.CredentialID.Text("cred"),
		CreatedAt: store.FormatTime(s.CreatedAt), UpdatedAt: store.FormatTime(s.UpdatedAt),
	}
	times, err := s.NextTimes(after)
	if err != nil {
		return d // a time zone that this machine's database does not have
	}
	for _, t := range times {
		d.NextTimes = append(d.NextTimes, store.FormatTime(t))
	}
	return d
}

// newListedDocument shows the due times after the time of the database's clock at which the schedule was read.
func newListedDocument(s *schedules.Listed) scheduleDocument {
	return newScheduleDocument(&s.Schedule, s.Now)
}

// Schedule encodes a schedule as GET /v1/schedules/{id} returns it.
func (EventData) Schedule(s *schedules.Listed) []byte { return wire.Encode(newListedDocument(s)) }

// Occurrence encodes an item of GET /v1/schedules/{id}/occurrences.
func (EventData) Occurrence(o *schedules.Occurrence) []byte {
	return wire.Encode(newOccurrenceDocument(o))
}

// scheduleList is the list of schedules, newest first.
var scheduleList = list[schedules.Filter, schedules.Listed]{
	filters: []filter[schedules.Filter]{
		wordFilter("status", schedules.Statuses, func(f *schedules.Filter) *string { return &f.Status }),
	},
	read:    ofAccount(schedules.List),
	sortKey: func(s *schedules.Listed) store.Position { return store.Position{Time: s.CreatedAt, ID: s.ID} },
	append:  encoded(newListedDocument),
}

// occurrenceDocument is an item of GET /v1/schedules/{id}/occurrences.
type occurrenceDocument struct {
	ScheduleID  string  `json:"schedule_id"`
	DueAt       string  `json:"due_at"`
	LastDueAt   string  `json:"last_due_at"`
	Count       int     `json:"count"` // of due times; above 1 if several were missed in a row
	Status      string  `json:"status"`
	Code        *string `json:"code"` // why it was skipped; null: a run was created
	Detail      *string `json:"detail"`
	RunID       *string `json:"run_id"`
	CreatedAt   string  `json:"created_at"`
	EvaluatedAt *string `json:"evaluated_at"` // when alerts were derived from the run
}

func newOccurrenceDocument(o *schedules.Occurrence) occurrenceDocument {
	return occurrenceDocument{o.ScheduleID.Text("sched"), store.FormatTime(o.DueAt), store.FormatTime(o.LastDueAt), o.Count, o.Status, o.Code,
		o.Detail, idOrNull("run", o.RunID), store.FormatTime(o.CreatedAt), store.FormatTimeOrNil(o.EvaluatedAt)}
}

// occurrenceList is filtered by status only.
var occurrenceList = list[string, schedules.Occurrence]{
	filters: []filter[string]{
		wordFilter("status", schedules.OccurrenceStatuses, func(status *string) *string { return status }),
	},
	read: func(ctx context.Context, db store.Querier, x *exchange, status string, page store.Page) ([]schedules.Occurrence, error) {
		id, err := scheduleID(&x.routed)
		if err != nil {
			return nil, err
		}
		return schedules.Occurrences(ctx, db, x.credential().AccountID, id, status, page)
	},
	sortKey: func(o *schedules.Occurrence) store.Position { return store.Position{Time: o.DueAt, ID: o.ScheduleID} },
	append:  encoded(newOccurrenceDocument),
}

// createSchedule adds a schedule that acts for the credential of the request. The run is checked now, so that a run
// that can never be created is rejected, and again at each due time.
func (g *Gateway) createSchedule(x *exchange, r *http.Request) error {
	body, err := readScheduleBody(x, r, newScheduleMembers)
	if err != nil {
		return err
	}
	return body.refused(g.respondInReads(x, http.StatusCreated, func(ctx context.Context) (any, error) {
		// The checks read the catalog on other connections, so they precede the transaction of Create.
		if err := g.checkRun(ctx, x, body); err != nil {
			return nil, err
		}
		s, err := g.cfg.Schedules.Create(ctx, x.credential().AccountID, x.credential().ID, body.Change)
		if err != nil {
			return nil, err
		}
		x.set("Location", Base+"?path=/v1/schedules/"+s.ID.Text("sched"))
		return newListedDocument(s), nil
	}))
}

// checkRun applies the run checks to the run of a body, if it has one.
func (g *Gateway) checkRun(ctx context.Context, x *exchange, body *scheduleBody) error {
	if body.proposal == nil {
		return nil
	}
	// As in createRun, the orderer is the credential of the request.
	body.proposal.Orderer, body.proposal.CatalogRevision = runs.OrdererOf(x.credential()), x.admission.CatalogRevision
	_, err := g.cfg.Runs.Check(ctx, body.proposal)
	return err
}

// readSchedule responds with a schedule, and with its due times after the parameter after or, without it, after now.
func (g *Gateway) readSchedule(x *exchange, r *http.Request) error {
	after, err := afterOf(x)
	if err != nil {
		return err
	}
	id, err := scheduleID(r)
	if err != nil {
		return err
	}
	s, err := readOne(g, x, func(ctx context.Context, db store.Querier) (*schedules.Listed, error) {
		return schedules.Get(ctx, db, x.credential().AccountID, id)
	})
	if err != nil {
		return err
	}
	if after == nil {
		after = &s.Now
	}
	x.write(http.StatusOK, "application/json", wire.Encode(newScheduleDocument(&s.Schedule, *after)))
	return nil
}

// changeSchedule checks that the members fit each other, and checks the run, before the schedule is locked.
func (g *Gateway) changeSchedule(x *exchange, r *http.Request) error {
	body, err := readScheduleBody(x, r, scheduleChangeMembers)
	if err != nil {
		return err
	}
	id, err := scheduleID(r)
	if err != nil {
		return err
	}
	return body.refused(g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		account := x.credential().AccountID
		// Without a lock: Update merges again, under the lock of the schedule.
		if _, err := g.cfg.Schedules.Merge(ctx, account, id, body.Change); err != nil {
			return nil, err
		}
		if err := g.checkRun(ctx, x, body); err != nil {
			return nil, err
		}
		return asDocument(newListedDocument)(g.cfg.Schedules.Update(ctx, account, id, x.credential().ID, body.Change))
	}))
}

func (g *Gateway) deleteSchedule(x *exchange, r *http.Request) error {
	return g.deleteInReads(x, r, scheduleID, g.cfg.Schedules.Delete)
}

func scheduleID(r *http.Request) (store.ID, error) { return pathID(r, "sched", schedules.ErrNotFound) }

// refused returns the problem for an error that is about members of the body, and other errors as they are.
func (b *scheduleBody) refused(err error) error {
	if e, ok := errors.AsType[*runs.Refusal](err); ok {
		// The proposal is at the member run, so the pointers of its faults begin there.
		return refused(e, b.Object.At.Member("run"))
	}
	if e, ok := errors.AsType[*schedules.InvalidError](err); ok {
		var f problem.Faults
		for _, fault := range e.Faults {
			f.Add(b.Object.At.String()+"/"+fault.At, fault.Detail)
		}
		return invalidSchedule(f)
	}
	if e, ok := errors.AsType[*schedules.ExistsError](err); ok {
		p := &problem.Problem{Code: problem.ScheduleExists, Detail: "Another schedule of the account has this name.", ExistingID: e.ID.Text("sched")}
		p.Errors.Add(b.Object.At.String()+"/name", "is also the name of "+e.ID.Text("sched"))
		return p
	}
	return err
}

// Package events lists what has happened to accounts: runs that became final, alerts that were opened, recommendations
// that were suggested, and tests of webhooks.
//
// It owns the table events. A package whose change is an event describes it by a Cause and records it in the
// transaction of the change, by a Recorder. Package webhooks is the Recorder: it writes events by Recorded and queues
// their deliveries in the same statement. The gateway lists and reads events for the routes /v1/events; command aiv
// purges them.
package events

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// The types of events.
const (
	RunCompleted            = "run.completed"
	RunPartial              = "run.partial"
	RunFailed               = "run.failed"
	RunCanceled             = "run.canceled"
	AlertOpened             = "alert.opened"
	RecommendationSuggested = "recommendation.suggested"
	SchedulePaused          = "schedule.paused"
	ScheduleSkipped         = "schedule.skipped"
	WebhookTest             = "webhook.test"
)

// Types returns all types, in the order in which clients see them. The Capability of the package that causes an event
// has the scope that its data requires.
func Types() []string {
	return []string{RunCompleted, RunPartial, RunFailed, RunCanceled, AlertOpened, RecommendationSuggested,
		SchedulePaused, ScheduleSkipped, WebhookTest}
}

// Events are kept for Retention.
const Retention = 30 * 24 * time.Hour

// An Event is something that happened to an account.
type Event struct {
	ID        store.ID
	Type      string
	CreatedAt time.Time
	Data      []byte // a JSON object
}

// ErrNotFound means that the account has no such event.
var ErrNotFound = errors.New("the account has no such event")

// A Filter selects events.
type Filter struct {
	Types    []string   // one of these; none: no event
	From, To *time.Time // of CreatedAt; To is exclusive
}

// List returns a page of an account's events, newest first, and one more if there is one.
func List(ctx context.Context, db store.Querier, account store.ID, f Filter, page store.Page) ([]Event, error) {
	if len(f.Types) == 0 {
		return nil, nil
	}
	q := store.KeysetQuery{Select: listEvents, Order: []string{"created_at", "id"}, From: f.From, To: f.To, Page: page}
	q.Where("account_id = ?", account)
	if len(f.Types) < len(Types()) {
		q.Filter("type", f.Types...)
	}
	return store.ReadPage[Event](ctx, db, &q)
}

// Get returns an event, or ErrNotFound.
func Get(ctx context.Context, db store.Querier, account, id store.ID) (*Event, error) {
	return store.ReadOne[Event](ctx, db, ErrNotFound, getEvent, account, id)
}

// One transaction deletes up to PurgeStep events.
const PurgeStep = 500

// Purge deletes events older than Retention in small steps, and returns how many. Deliveries are deleted with their
// events. It deletes nothing and returns a *store.ClockError if the clocks of the process and the database disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool) (total int64, err error) {
	before, err := store.PurgeBefore(ctx, pool, Retention)
	if err != nil {
		return 0, err
	}
	return store.ExecInSteps(ctx, pool, PurgeStep, deleteEvents, store.OnCitus(citusDeleteEvents), before)
}

// A Cause is an event to record.
type Cause struct {
	AccountID store.ID
	ID        store.ID // of the event
	Type      string
	SubjectID store.ID // the run, the alert, the recommendation or the webhook
	Data      []byte   // a JSON object, as the API returns the subject
}

// A Recorder records events in the caller's transaction, which is the one that makes them true. A second final event of
// a run is ignored. For alerts and recommendations, the caller ensures that each change of status is recorded once.
//
// It comes after the transaction's other statements. Several calls in one transaction must have accounts in ascending
// order.
type Recorder func(ctx context.Context, tx store.Tx, causes []Cause) error

// A RecorderOfMany is a Recorder of more events than one statement should write. all has the causes of one statement in
// each element, and may be read twice. accounts lists the accounts of all causes.
type RecorderOfMany func(ctx context.Context, tx pgx.Tx, accounts []store.ID, all iter.Seq[[]Cause]) error

// Args returns the parameters of Recorded.
func Args(causes []Cause) []any {
	n := len(causes)
	accounts, ids, subjects := make([]store.ID, n), make([]store.ID, n), make([]store.ID, n)
	types, data := make([]string, n), make([]string, n)
	for i, c := range causes {
		accounts[i], ids[i], types[i], subjects[i], data[i] = c.AccountID, c.ID, c.Type, c.SubjectID, string(c.Data)
	}
	return []any{accounts, ids, types, subjects, data}
}

// An Added is an event that was written.
type Added struct {
	AccountID, ID store.ID
	Type          string
	CreatedAt     time.Time
}

// AddOnCitus is Recorded on Citus, as a statement. It returns the events that were written.
func AddOnCitus(ctx context.Context, tx store.Tx, causes []Cause) ([]Added, error) {
	return store.Collect(ctx, tx, pgx.RowToStructByPos[Added], citusAddEvents, Args(causes)...)
}

// Add writes one event without deliveries, and returns it.
func Add(ctx context.Context, tx store.Tx, c Cause) (*Event, error) {
	return store.ReadOne[Event](ctx, tx, nil, addEvent, c.AccountID, c.ID, c.Type, c.SubjectID, c.Data)
}

package events

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

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

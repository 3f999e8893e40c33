package insights

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
)

// EventData encodes what an event carries, as the API returns it.
type EventData interface {
	Recommendation(*Recommendation) []byte
	Alert(*Alert) []byte
}

// One statement writes up to recordStep events.
const recordStep = 5000

// A candidate is a line after whose import a recommendation is suggested or an alert is open. It causes an event unless
// the recommendation was suggested or the alert open before.
type candidate struct {
	account, id store.ID
	eventType   string
	encode      func(d EventData, brand, schedule *store.ID) []byte // the event's data

	brand, schedule *store.ID // of a derived row that is imported again
}

// newEvents returns the candidates that are not suggested or open yet. The tables are locked.
func (in *incoming) newEvents(ctx context.Context, tx pgx.Tx) ([]candidate, error) {
	accounts, ids := make([]store.ID, len(in.candidates)), make([]store.ID, len(in.candidates))
	for i, c := range in.candidates {
		accounts[i], ids[i] = c.account, c.id
	}
	rows, err := tx.Query(ctx, readActive, accounts, ids)
	if err != nil {
		return nil, err
	}
	type subject struct { // a recommendation and an alert may have the same UUID
		id        store.ID
		eventType string
	}
	type state struct {
		isActive        bool
		brand, schedule *store.ID
	}
	before := make(map[subject]state)
	var s subject
	var is state
	if _, err := pgx.ForEachRow(rows, []any{&s.id, &s.eventType, &is.isActive, &is.brand, &is.schedule}, func() error {
		before[s] = is
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range in.candidates {
		c := &in.candidates[i]
		// The state of a candidate without a row is zero: not active.
		of := before[subject{c.id, c.eventType}]
		c.brand, c.schedule = of.brand, of.schedule
	}
	return slices.DeleteFunc(in.candidates, func(c candidate) bool { return before[subject{c.id, c.eventType}].isActive }), nil
}

// record records events for what has become suggested or open.
func (a *Admin) record(ctx context.Context, tx pgx.Tx, active []candidate) error {
	// A Recorder needs accounts in ascending order.
	slices.SortStableFunc(active, func(a, b candidate) int { return a.account.Compare(b.account) })
	var accounts []store.ID
	for _, c := range active {
		accounts = append(accounts, c.account)
	}
	return a.Record(ctx, tx, slices.Compact(accounts), func(yield func([]events.Cause) bool) {
		for step := range slices.Chunk(active, recordStep) {
			causes := make([]events.Cause, len(step))
			for i, c := range step {
				// The data is encoded for one statement at a time, to bound memory.
				data := c.encode(a.Events, c.brand, c.schedule)
				causes[i] = events.Cause{AccountID: c.account, ID: store.NewID(), Type: c.eventType, SubjectID: c.id, Data: data}
			}
			if !yield(causes) {
				return
			}
		}
	})
}

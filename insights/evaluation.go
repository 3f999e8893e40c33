package insights

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/store"
)

// An Evaluation contains what is known of a final run of a schedule, from one snapshot of the database. Alerts and
// recommendations are derived from it.
type Evaluation struct {
	Account, Schedule store.ID
	Name              string             // of the schedule
	MinChange         visibility.Decimal // the smallest difference that opens an alert

	Run       store.ID
	Status    string // of the run
	Country   string
	Models    []string
	Total     int // jobs
	Failed    int
	Disturbed bool // too many jobs failed for a comparison

	Baseline    int                        // runs
	Comparisons *visibility.RunComparisons // nil: no baseline
	Gaps        *visibility.Gaps           // nil if the run is disturbed
	Texts       map[string]string          // of the run's questions
}

// Changes are what an evaluation of a run has changed.
type Changes struct {
	Alerts          []Changed
	Recommendations []Changed
}

// Changed is an alert or a recommendation of a type that was opened, resolved, suggested or done.
type Changed struct{ Type, Change string }

// A Deriver writes what follows from evaluations.
type Deriver struct {
	Events EventData
	Record events.Recorder
	NewID  func() store.ID
}

// Apply changes the alerts and recommendations of a schedule at the time now, in a transaction that has called
// LockDerived. No other evaluation of the account may run at the same time. Apply records the events last.
func (d *Deriver) Apply(ctx context.Context, tx pgx.Tx, now time.Time, e *Evaluation) (*Changes, error) {
	a := &application{Deriver: d, Evaluation: e, tx: tx, now: now, changes: &Changes{}}
	if err := a.alerts(ctx); err != nil {
		return nil, err
	}
	// A disturbed run has no Gaps, so recommendations do not change.
	if !e.Disturbed {
		if err := a.recommendations(ctx); err != nil {
			return nil, err
		}
	}
	if len(a.causes) == 0 {
		return a.changes, nil
	}
	return a.changes, d.Record(ctx, tx, a.causes)
}

// An application is one call of Apply. Statements are queued in batch and sent by flush.
type application struct {
	*Deriver
	*Evaluation
	tx      pgx.Tx
	now     time.Time
	batch   pgx.Batch
	causes  []events.Cause
	changes *Changes
}

// cause adds an event of the evaluation. Apply records all events after its other statements, as an [events.Recorder]
// requires.
func (a *application) cause(eventType string, id store.ID, data []byte) {
	a.causes = append(a.causes, events.Cause{AccountID: a.Account, ID: a.NewID(), Type: eventType, SubjectID: id, Data: data})
}

// LockDerived locks the tables as changes of derived rows do. Call it before the transaction takes other locks, because
// an import and a purge lock the tables first.
func LockDerived(ctx context.Context, tx pgx.Tx, account store.ID) error {
	var b pgx.Batch
	b.Queue(touchRecommendations, account)
	b.Queue(touchAlerts, account)
	return tx.SendBatch(ctx, &b).Close()
}

// DetachSchedule ends what was derived for a schedule that the transaction deletes. now is the database's time.
func DetachSchedule(ctx context.Context, tx pgx.Tx, account, schedule store.ID, now time.Time) error {
	var b pgx.Batch
	b.Queue(detachRecommendations, account, schedule, now)
	b.Queue(detachAlerts, account, schedule, now)
	return tx.SendBatch(ctx, &b).Close()
}

package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"aiv/store"
)

// An Outcome is how an attempt ends.
type Outcome string

// The outcomes of a settlement.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Retry     Outcome = "retry"
	Throttled Outcome = "throttled"
	Released  Outcome = "released"

	renewed Outcome = "renewed" // the lease is extended
	expired Outcome = "expired" // the lease has ended
)

// A Settlement is a worker's report of the end of one attempt.
type Settlement struct {
	Key          Key // the zero Key: the id was not valid
	Attempt      int
	Outcome      Outcome
	Answer       string // of Completed: the JSON that clients get
	ErrorCode    string // of Failed and Retry
	ErrorMessage string
	After        time.Duration // of Retry and Throttled; 0: the default. Of a renewal: the length of the lease
}

// A State is the result of a job's settlement or renewal.
type State struct {
	State string    // held, lost, settled, stale or canceled
	Until time.Time // of a held lease
}

// The states that workers get.
const (
	Held     = "held"
	Lost     = "lost"
	Settled  = "settled"
	Stale    = "stale"
	Canceled = "canceled"
)

// A report is the settlements or renewals of one request, or of a sweep.
type report struct {
	providers []string // that the worker may have; nil: all
	jobs      []Settlement
}

func (r *report) accepts(provider string) bool {
	return (&demand{providers: r.providers}).accepts(provider)
}

// weight counts jobs, and answers by their length.
func (r *report) weight() int {
	n := len(r.jobs)
	for i := range r.jobs {
		n += len(r.jobs[i].Answer) >> 13
	}
	return n
}

// Settle ends attempts, and returns the state of each. A settlement whose attempt does not hold its job changes nothing.
func (d *Dispatcher) Settle(ctx context.Context, providers []string, settlements []Settlement) ([]State, error) {
	return d.reports.Do(ctx, &report{providers, settlements})
}

// A Renewal names a job and the attempt that holds it.
type Renewal struct {
	Key     Key
	Attempt int
}

// Renew makes leases end after the given time from now, even if that is sooner, and returns the state of each.
func (d *Dispatcher) Renew(ctx context.Context, providers []string, lease time.Duration, jobs []Renewal) ([]State, error) {
	r := &report{providers, make([]Settlement, len(jobs))}
	for i, j := range jobs {
		r.jobs[i] = Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: renewed, After: lease}
	}
	return d.reports.Do(ctx, r)
}

// causedByOneReport reports whether err may be due to the content of a single report. Applying a report twice does no harm.
func causedByOneReport(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (!store.IsUnavailable(err) || store.LostServer(err))
}

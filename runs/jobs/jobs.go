// Package jobs moves the jobs of runs from queued to a final state: it hands them out to workers, keeps their leases,
// records the outcomes that workers report, and finishes runs.
//
// It owns the tables job_arrivals, job_queue, job_turns, job_leases, job_holds, job_results, job_attempts,
// provider_settings, provider_pauses, provider_throttles and provider_minutes, and moves the counters and the status of
// measurement_runs, which package runs owns. Package gateway/worker calls it for workers; command aiv dispatch runs its
// Tasks. Package results reads its tables.
//
// Any number of processes may run a Dispatcher. They share only the database; there is no leader.
//
// # The path of a job
//
// A new run has a row of job_arrivals until a transaction admits it: then job_queue has its fresh jobs, a range for
// each model. An account with jobs at a provider has a turn there (job_turns), and the lowest turn is served first.
// Claimed jobs are in job_leases, as ranges: held by a worker, waiting for another try, or ready to be claimed again.
// Jobs that have ended are in job_results, and attempts that gave their job back in job_attempts.
//
// # Locks
//
// A transaction that hands out jobs first takes an advisory lock, so that at most one runs at a time and it reads
// exactly which jobs wait, which account is next and how many claims the limits allow. Claims that arrive during one
// transaction share the next. It locks the rows of runs only to start them or to take returned jobs, and otherwise rows
// of job_queue, which a cancellation deletes. So claims and settlements of one run do not wait for each other.
//
// A transaction that settles or renews jobs first locks the rows of their runs, in the order of their keys. Values read
// under the lock stay current until the commit, so the changes can be computed in Go. The leases of a canceled run are
// replaced by results under the lock of claims instead; no settlement touches them.
//
// # Citus
//
// A transaction on several servers is committed on the coordinator first. Its changes on another server are locked and
// invisible until they are committed there, which may take as long as the server is unreachable. Until then a statement
// may read old rows of an account. A statement that writes them waits for the lock, and then finds whether they have
// changed. The counts that limits depend on are on the coordinator: provider_minutes and job_holds.
package jobs

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/store"
	"aiv/store/batch"
)

// Config contains what a Dispatcher depends on.
type Config struct {
	Pool       *pgxpool.Pool
	Timeout    time.Duration // of one transaction
	MaxWaiting int           // claims, and settlements, that may wait for a transaction
	LockWait   string        // lock_timeout of a batch of settlements, which are then retried by run; default: 500ms
	Outage     *store.Outage // on Citus

	// Count is called in the transaction that ends jobs with answers or errors, before Finished. It adds its writes to
	// the batch, which is sent afterwards. It may be nil.
	Count func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []Ended) error
	// Prepare is called with jobs before the transaction that may end them. It returns a value for each job, which
	// Count finds in Ended.Prepared. Work that takes processor time belongs here, because settlements of a run wait
	// for the transaction. Prepare must be set if Count is.
	Prepare func(jobs []Ended) []any

	// Finished is called in the transaction that makes runs final. It may be nil.
	Finished func(ctx context.Context, tx store.Tx, finished []runs.Run) error
}

// A Dispatcher hands out jobs and records their outcomes.
type Dispatcher struct {
	cfg     Config
	claims  *batch.Batcher[*ClaimRequest, response[Job]]
	reports *batch.Batcher[*report, response[Reply]]

	waiters waiters
	stopped context.Context // done when waiting claims must end
	stop    context.CancelFunc
	ahead   atomic.Pointer[time.Duration] // the database's clock minus this machine's; nil: not measured yet
	counts  counts
}

// New returns a Dispatcher.
func New(cfg Config) *Dispatcher {
	cfg.LockWait = cmp.Or(cfg.LockWait, "500ms")
	d := &Dispatcher{cfg: cfg}
	d.stopped, d.stop = context.WithCancel(context.Background())
	d.claims = batch.New(batch.Config[*ClaimRequest, response[Job]]{
		Flush: d.claimAll, Timeout: cfg.Timeout, MaxWaiting: cfg.MaxWaiting, DropAbandoned: true,
		Weight: func(r *ClaimRequest) int { return r.Limit }, MaxWeight: maxBatchClaims,
	})
	d.reports = batch.New(batch.Config[*report, response[Reply]]{
		Flush: d.reportBatch, Retry: d.reportAll, RetryIndividually: store.MayConcernOneRow, // applying a report twice does no harm
		Key: (*report).firstRun, Timeout: cfg.Timeout, MaxWaiting: cfg.MaxWaiting,
		Weight: (*report).weight, MaxWeight: maxBatchWeight,
	})
	return d
}

// The largest batch of one transaction: jobs claimed, and weight of reports.
const (
	maxBatchClaims = 2000
	maxBatchWeight = 2000
)

// Now returns the database's time: this machine's clock plus the difference measured in the latest transaction.
func (d *Dispatcher) Now(ctx context.Context) (time.Time, error) {
	if ahead := d.ahead.Load(); ahead != nil {
		return time.Now().Add(*ahead), nil
	}
	return d.ReadNow(ctx)
}

// ReadNow reads the database's time. Now is wrong if a clock has stepped since the latest transaction; ReadNow is not.
func (d *Dispatcher) ReadNow(ctx context.Context) (time.Time, error) {
	now, err := store.Now(ctx, d.cfg.Pool)
	if err == nil {
		d.noteClock(now)
	}
	return now, err
}

func (d *Dispatcher) noteClock(now time.Time) { d.ahead.Store(new(time.Until(now))) }

// Package runs creates, reads and cancels measurement runs.
//
// It owns the tables measurement_runs, measurement_run_models, measurement_jobs, usage_records and account_months. The
// counters and the state of a run are also updated by package jobs, which hands out its jobs and counts their results.
// Reads of runs also read its table job_queue, for the number of running jobs. The gateway calls package runs for the
// routes under /v1/runs. A Checker, which package checks implements, may refuse a run.
package runs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/batch"
)

// A Proposal is a requested run. Its form is valid; the checks have not run.
type Proposal struct {
	Orderer         Orderer
	CatalogRevision int64 // of the catalog that the checks apply

	ModelIDs        []string
	QuestionIDs     []string
	Repetitions     int64
	MeasurementType string
	Locale          string
	Country         string
	Language        string
}

// TotalJobs is the number of jobs of the run: one for each model, question and repetition.
func (p *Proposal) TotalJobs() int64 {
	return int64(len(p.ModelIDs)) * int64(len(p.QuestionIDs)) * p.Repetitions
}

// A Run is a measurement run. Its fields are in the order of columns.
type Run struct {
	AccountID          store.ID
	ID                 store.ID
	Status             string // one of Statuses
	MeasurementType    string
	MethodologyVersion string
	ModelIDs           []string
	QuestionIDs        []string
	Repetitions        int // of each question, for each model
	Locale             string
	Country            string
	Language           string
	TotalJobs          int
	Running            int // jobs in each state; the rest of TotalJobs is queued
	Completed          int
	Failed             int
	Canceled           int
	CreatedAt          time.Time
	StartedAt          *time.Time
	FinishedAt         *time.Time
}

// Queued returns the number of queued jobs.
func (r *Run) Queued() int { return r.TotalJobs - r.Running - r.Completed - r.Failed - r.Canceled }

// Statuses are the states of a run: queued → running → completed, partial or failed; queued or running → canceled.
var Statuses = []string{"queued", "running", "completed", "partial", "failed", "canceled"}

// A Checker decides whether a proposal may become a run, and by which methodology it is measured. It returns a *Refusal
// if it may not.
type Checker interface {
	Check(ctx context.Context, p *Proposal) (methodology string, err error)
}

// A Refusal is the result of a check that failed, with every fault that the check found.
type Refusal struct {
	Check  string // the check's name
	Faults []Fault
}

// A Fault is one reason to refuse a proposal. Code is the stable word that a client switches on, Title its description.
// The first fault's Code and Title become the problem's.
type Fault struct {
	Code    string
	Title   string
	Pointer string // a JSON pointer into the proposal, such as /model_ids/0; empty if it concerns no single member
	Detail  string // with a Pointer a phrase, such as "there is no such model"; otherwise a sentence
}

func (r *Refusal) Error() string { return "refused by " + r.Check + ": " + r.Faults[0].Detail }

// Errors of Create that its caller decides on.
var (
	// ErrKeyReused means that the idempotency key was used with a different request.
	ErrKeyReused = errors.New("the idempotency key was used with a different request")
	// ErrKeyInUse means that another request with the same key is still in flight; waiting for it timed out.
	ErrKeyInUse = errors.New("a request with the same idempotency key is in flight")
)

// Config contains what Runs depends on.
type Config struct {
	Pool        *pgxpool.Pool
	Reads       *pgxpool.Pool // for Get, MonthOf and the read of Cancel; nil: Pool
	Checks      Checker
	NewID       func() store.ID
	Timeout     time.Duration // of one batch
	ReadTimeout time.Duration // of one batch of reads; 0: Timeout
	MaxWaiting  int           // bounds the runs that wait in each batcher, and the waiting reads; one account may have a quarter of the reads

	// Enqueue is an INSERT that queues runs for dispatch, in the transaction that writes them. It reads them from a
	// common table expression run (account_id, id). Empty: runs are not queued.
	Enqueue string

	// Finished is called in the transaction that makes runs final. It may be nil.
	Finished func(ctx context.Context, tx store.Tx, finished []Run) error
}

// Runs creates, reads and cancels runs.
type Runs struct {
	cfg Config

	// Each run waits in one of these batchers: large if it has more than maxBatchJobs jobs, and metered if it is written
	// under a lock on its account's month (Orderer.isMetered).
	small, large, metered, largeMetered *batch.Batcher[*pending, writeResult]

	reads *batch.Batcher[runKey, *Run]

	insertRuns, insertLargeRuns string // SQL

	unfinished unfinishedJobs
	counts     counts
}

// New returns a Runs.
func New(cfg Config) *Runs {
	cfg.Reads = cmp.Or(cfg.Reads, cfg.Pool)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, cfg.Timeout)
	enqueue := ""
	if cfg.Enqueue != "" {
		enqueue = ", enqueued AS (" + cfg.Enqueue + ")"
	}
	r := &Runs{cfg: cfg, insertRuns: insertRuns + enqueue + returnWritten, insertLargeRuns: insertLargeRuns + enqueue + returnLargeWritten}
	config := batch.Config[*pending, writeResult]{
		// The keys of small and large runs are idempotency keys: what a retry waits for. The keys of metered runs are
		// accounts.
		Flush: within(batchLockWait, r.writeSmall), Retry: forTheRest(r.insert), RetryIndividually: causedByOneRun, Key: (*pending).key,
		Timeout: cfg.Timeout, MaxWaiting: cfg.MaxWaiting, DropAbandoned: true,
		Weight: func(p *pending) int { return p.run.TotalJobs }, MaxWeight: maxBatchJobs,
	}
	r.small = batch.New(config)

	// Each large run exceeds MaxWeight by itself, so it is a batch of its own.
	large := config
	large.Flush, large.Retry = within(batchLockWait, r.writeLarge), forTheRest(r.writeLarge)
	large.MaxWaiting = min(cfg.MaxWaiting, maxLargeWaiting)
	r.large = batch.New(large)

	metered := config
	metered.Flush, metered.Retry = within(meteredLockWait, r.writeMetered), r.retryMetered
	metered.Key, metered.RetryIndividually = (*pending).account, store.MayConcernOneRow
	r.metered = batch.New(metered)

	largeMetered := metered
	largeMetered.MaxWaiting = large.MaxWaiting
	r.largeMetered = batch.New(largeMetered)

	r.reads = batch.New(batch.Config[runKey, *Run]{
		Flush: r.readBatch, Timeout: cfg.ReadTimeout, MaxWaiting: cfg.MaxWaiting, MaxWeight: maxBatchReads, DropAbandoned: true,
		Key: func(k runKey) any { return k.account }, MaxPerKey: batch.PartOf(cfg.MaxWaiting),
		// On Citus, the rows of one account may be on a server that is unreachable. A second read does no harm.
		RetryIndividually: func(err error) bool { _, ok := errors.AsType[*pgconn.PgError](err); return ok },
	})
	return r
}

// maxBatchReads bounds the number of runs that are read in a batch.
const maxBatchReads = 200

// maxLargeWaiting bounds the large runs that wait. More cannot be written before their callers give up.
const maxLargeWaiting = 200

// Package runs admits, writes and reads measurement runs.
//
// It owns the tables measurement_runs, measurement_jobs and usage_records. The gateway calls it for the routes under
// /v1/runs. Package checks implements its Checker.
package runs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/idempotency"
	"aiv/store"
	"aiv/store/batch"
)

// A Proposal is a run that a client asks for. Its shape has been checked, its sense has not.
type Proposal struct {
	Credential      *auth.Credential
	CatalogRevision int64 // the state of the catalog that it is judged by

	ModelIDs        []string
	QuestionIDs     []string
	Repetitions     int64
	MeasurementType string
	Locale          string
	Country         string
	Language        string
}

// A Run is a measurement run.
type Run struct {
	ID                 store.ID
	AccountID          store.ID
	CredentialID       store.ID
	Status             string // one of Statuses
	MeasurementType    string
	MethodologyVersion string
	ModelIDs           []string
	QuestionIDs        []string
	Repetitions        int
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

// Statuses are the states of a run: queued → running → completed, partial or failed; queued or running → canceled.
var Statuses = []string{"queued", "running", "completed", "partial", "failed", "canceled"}

// A Checker decides whether a proposal may become a run. It returns the version of the methodology that the run uses, or
// a *Refusal.
type Checker interface {
	Check(ctx context.Context, p *Proposal) (methodology string, err error)
}

// A Refusal is the no of one check, with every fault that the check found.
type Refusal struct {
	Check  string // the check's name
	Faults []Fault
}

// A Fault is one thing that stands against a proposal. Code is the word that a client switches on and Title what it says
// for people; the first fault's are the refusal's.
type Fault struct {
	Code    string
	Title   string
	Pointer string // a JSON pointer into the proposal, such as /model_ids/0; empty when it is about none of its members
	Detail  string
}

func (r *Refusal) Error() string { return "refused by " + r.Check + ": " + r.Faults[0].Detail }

// Errors of Create that its caller decides on.
var (
	// ErrKeyReused means that the idempotency key stands for a different request.
	ErrKeyReused = errors.New("the idempotency key was used with a different request")
	// ErrKeyInUse means that a request with the same key has been in flight for as long as this one would wait.
	ErrKeyInUse = errors.New("a request with the same idempotency key is in flight")
)

// Config holds what Runs depends on.
type Config struct {
	Pool    *pgxpool.Pool
	Checks  Checker
	NewID   func() store.ID
	Timeout time.Duration // of one round trip
	Waiting int           // how many runs may wait to be written
}

// Runs is the room's door.
type Runs struct {
	cfg   Config
	small *batch.Batcher[*writing, bool]
	large *batch.Batcher[*writing, bool]

	counts counts
}

// New returns the door.
func New(cfg Config) *Runs {
	r := &Runs{cfg: cfg}
	r.small = newLane(r.writeSmall, cfg.Timeout, cfg.Waiting)
	r.large = newLane(r.writeLarge, cfg.Timeout, min(cfg.Waiting, maxLargeWaiting))
	return r
}

// newLane returns a lane whose trips write runs. An order that its caller no longer waits for before it is on its way is not
// written: he was told that nothing is known of it, and may have given up.
func newLane(write writer, timeout time.Duration, waiting int) *batch.Batcher[*writing, bool] {
	return batch.New(batch.Config[*writing, bool]{
		Flush: write.waiting(together), Timeout: timeout, MaxWaiting: waiting, DropAbandoned: true,
		RetryIndividually: oneIsAtFault, Retry: write.waiting(patiently), Key: (*writing).key,
		Weight: func(w *writing) int { return w.run.TotalJobs }, MaxWeight: maxJobsTogether,
	})
}

// maxLargeWaiting is how many large runs may wait: more than are written while their callers do.
const maxLargeWaiting = 200

// Hash tells whether two proposals are the same request. The order of ids counts; the credential does not.
func (p *Proposal) hash() idempotency.Hash {
	fields := make([]string, 0, len(p.ModelIDs)+len(p.QuestionIDs)+8)
	fields = append(fields, strconv.Itoa(len(p.ModelIDs)))
	fields = append(fields, p.ModelIDs...)
	fields = append(fields, strconv.Itoa(len(p.QuestionIDs)))
	fields = append(fields, p.QuestionIDs...)
	fields = append(fields, strconv.FormatInt(p.Repetitions, 10), p.MeasurementType, p.Locale, p.Country, p.Language)
	return idempotency.HashOf(fields...)
}

// TotalJobs is the number of jobs that the proposal would make: one for each model, question and repetition.
func (p *Proposal) TotalJobs() int64 {
	return int64(len(p.ModelIDs)) * int64(len(p.QuestionIDs)) * p.Repetitions
}

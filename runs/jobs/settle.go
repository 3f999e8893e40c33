package jobs

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs/answers"
	"aiv/store"
)

// An Outcome is how an attempt ends.
type Outcome string

// The outcomes of a settlement.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Retry     Outcome = "retry"     // gives the job back after a failure that counts as a try
	Throttled Outcome = "throttled" // gives it back because its provider refuses requests for a time
	Released  Outcome = "released"  // gives it back without a reason
	// Unavailable gives the job back as Released does, and pauses its provider until an operator resumes it.
	Unavailable Outcome = "unavailable"

	renewed Outcome = "renewed" // the lease is extended
	expired Outcome = "expired" // the lease has ended
)

// A Settlement is a worker's report of the end of one attempt.
type Settlement struct {
	Key          Key // the zero Key: the id was not valid
	Attempt      int
	Outcome      Outcome
	Answer       *answers.Answer // of Completed
	ErrorCode    string          // of Failed and Retry; the reason of Unavailable
	ErrorMessage string          // of the same outcomes
	After        time.Duration   // of Retry and Throttled; 0: the default. Of a renewal: the length of the lease

	prepared any // by Config.Prepare, of an Answer
}

// A Reply tells a worker the state of a job that it has settled or renewed.
type Reply struct {
	State string    // held, lost, settled, stale or canceled
	Until time.Time // of a held lease
}

// The states of a Reply.
const (
	Held     = "held"     // of a renewal: the lease is extended
	Lost     = "lost"     // of a renewal: the attempt no longer has the job
	Settled  = "settled"  // of a settlement: it took effect, now or before
	Stale    = "stale"    // of a settlement: it changed nothing
	Canceled = "canceled" // of both: the run was canceled
)

// A report is the settlements or renewals of one request, or of a sweep.
type report struct {
	from Reporter
	jobs []Settlement // not empty
}

// A Reporter is the worker that sent a report.
type Reporter struct {
	Worker    store.ID // the report fails if it is revoked; zero: not checked
	Providers []string // whose jobs it may report about; nil: all
}

// firstRun returns the run of the first job, so that the reports of a run that is locked share one retry.
func (r *report) firstRun() any {
	return runKey{r.jobs[0].Key.Account, r.jobs[0].Key.Run}
}

// weight counts jobs, and answers by their length.
func (r *report) weight() int {
	n := 0
	for i := range r.jobs {
		n += r.jobs[i].weight()
	}
	return n
}

// weight is 1, and 1 more for each KiB of an answer's texts.
func (s *Settlement) weight() int {
	if s.Answer == nil {
		return 1
	}
	return 1 + s.Answer.Size()>>10
}

// Settle ends attempts, and returns a reply for each. A settlement whose attempt does not hold its job changes nothing.
// Many or large settlements take several transactions, because claims wait for the runs that a transaction has locked.
// After an error, some settlements may have taken effect; all can be repeated. Settle returns auth.ErrUnknownWorker for
// a worker that is revoked.
func (d *Dispatcher) Settle(ctx context.Context, from Reporter, settlements []Settlement) ([]Reply, error) {
	d.prepare(settlements)
	replies := make([]Reply, 0, len(settlements))
	for len(settlements) > 0 {
		n := part(settlements)
		more, err := d.report(ctx, &report{from, settlements[:n]})
		if err != nil {
			return nil, err
		}
		replies, settlements = append(replies, more...), settlements[n:]
	}
	return replies, nil
}

// report applies one report, together with others.
func (d *Dispatcher) report(ctx context.Context, r *report) ([]Reply, error) {
	out, err := d.reports.Do(ctx, r)
	return out.items, cmp.Or(err, out.err)
}

// part returns how many settlements fit into half of a batch, at least one.
func part(settlements []Settlement) int {
	weight := 0
	for n := range settlements {
		if weight += settlements[n].weight(); weight > maxBatchWeight/2 && n > 0 {
			return n
		}
	}
	return len(settlements)
}

// A Renewal names a job and the attempt that holds it.
type Renewal struct {
	Key     Key
	Attempt int
}

// Renew makes leases end after the given time from now, even if that is sooner, and returns a reply for each job. jobs
// must not be empty. Renew returns auth.ErrUnknownWorker for a worker that is revoked.
func (d *Dispatcher) Renew(ctx context.Context, from Reporter, lease time.Duration, jobs []Renewal) ([]Reply, error) {
	r := &report{from, make([]Settlement, len(jobs))}
	for i, j := range jobs {
		r.jobs[i] = Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: renewed, After: lease}
	}
	return d.report(ctx, r)
}

// settledColumns are the columns of job_results that settlements write, in the order of result.row. The row of a
// canceled job is written by the statement that deletes its lease.
var settledColumns = []string{"account_id", "run_id", "ordinal", "attempts", "settled", "started_at", "finished_at",
	"answer", "error_code", "error_message"}

var insertResult = `
INSERT INTO job_results (` + strings.Join(settledColumns, ", ") + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// minCopy is the number of results from which COPY takes less time than an INSERT for each, although it is one more
// round trip: PostgreSQL writes copied rows a page at a time.
const minCopy = 16

// writeResults writes the results of the ledger, or adds their statements to the batch.
func (l *ledger) writeResults(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	if len(l.results) < minCopy {
		for _, r := range l.results {
			// Each row needs its own buffer, because the batch is sent later.
			var answer []byte
			b.Queue(insertResult, r.row(nil, l, &answer)...)
		}
		return nil
	}
	next := 0
	var row []any
	var answer []byte
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"job_results"}, settledColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if next == len(l.results) {
			return nil, nil
		}
		// The row and the buffer are reused: a row is sent before the next one is asked for.
		row = l.results[next].row(row[:0], l, &answer)
		next++
		return row, nil
	}))
	return err
}

// row appends the values of the columns, as pointers so that they are not allocated. It encodes the answer in the
// buffer, which may be reused after the row has been sent.
func (r *result) row(to []any, l *ledger, buf *[]byte) []any {
	var answer *[]byte
	if r.answer != nil {
		*buf = r.answer.AppendStored((*buf)[:0])
		answer = buf
	}
	return append(to, &r.key.Account, &r.key.Run, &r.key.Ordinal, &r.attempts, &r.settled, &r.startedAt, &l.now,
		answer, r.code, r.message)
}

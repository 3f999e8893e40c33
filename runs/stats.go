package runs

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/batch"
)

// Stats counts the create requests so far by result, and describes the batchers.
type Stats struct {
	Created, Replayed, Refused, Conflicts, Failed uint64 // create requests
	Jobs                                          uint64 // of the runs created
	Small, Large, Metered, LargeMetered, Reads    batch.Stats
}

// Stats returns the counts so far.
func (r *Runs) Stats() Stats {
	c := &r.counts
	return Stats{c.created.Load(), c.replayed.Load(), c.refused.Load(), c.conflicts.Load(), c.failed.Load(), c.jobs.Load(),
		r.small.Stats(), r.large.Stats(), r.metered.Stats(), r.largeMetered.Stats(), r.reads.Stats()}
}

type counts struct{ created, replayed, refused, conflicts, failed, jobs atomic.Uint64 }

// add counts one create request. A refusal by the quota counts as refused.
func (c *counts) add(q *CreateRequest, result *CreateResult, err error) {
	_, refused := errors.AsType[*Refusal](err)
	_, exceeded := errors.AsType[*QuotaError](err)
	switch {
	case refused || exceeded:
		c.refused.Add(1)
	// Another request has used the key, or is using it.
	case errors.Is(err, ErrKeyReused) || errors.Is(err, ErrKeyInUse):
		c.conflicts.Add(1)
	case err != nil:
		c.failed.Add(1)
	case result.Replayed:
		c.replayed.Add(1)
	default:
		c.created.Add(1)
		c.jobs.Add(uint64(q.Proposal.TotalJobs()))
	}
}

// A Queue describes the runs that are not final.
type Queue struct {
	OpenRuns   int64          // queued or running
	QueuedJobs int64          // of the open runs
	Oldest     *time.Time     // creation of the oldest open run; nil: there is none
	Age        *time.Duration // of that run, by the database's clock; not negative, even if that has stepped back
}

// ReadQueue counts all open runs and their queued jobs.
func ReadQueue(ctx context.Context, pool *pgxpool.Pool) (q Queue, err error) {
	var seconds *float64
	err = pool.QueryRow(ctx, readQueue).Scan(&q.OpenRuns, &q.QueuedJobs, &q.Oldest, &seconds)
	if seconds != nil {
		q.Age = new(max(0, time.Duration(*seconds*float64(time.Second))))
	}
	return q, err
}

// A Backlog describes the open runs at a cost that does not grow with their number.
type Backlog struct {
	Runs   int           // queued or running, counted up to a bound
	Oldest time.Duration // age of the oldest; 0: there is none
}

// ReadBacklog counts at most limit open runs.
func ReadBacklog(ctx context.Context, pool *pgxpool.Pool, limit int) (b Backlog, err error) {
	var seconds float64
	err = pool.QueryRow(ctx, readBacklog, limit).Scan(&b.Runs, &seconds)
	b.Oldest = max(0, time.Duration(seconds*float64(time.Second)))
	return b, err
}

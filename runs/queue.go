package runs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Queue is what is still to be measured.
type Queue struct {
	OpenRuns   int64          // queued or running
	QueuedJobs int64          // of the open runs
	Oldest     *time.Time     // when the oldest open run was created; nil: there is none
	Age        *time.Duration // of that run, by the database's clock
}

// ReadQueue tells how deep the queue is.
func ReadQueue(ctx context.Context, pool *pgxpool.Pool) (q Queue, err error) {
	var seconds *float64
	err = pool.QueryRow(ctx, readQueue).Scan(&q.OpenRuns, &q.QueuedJobs, &q.Oldest, &seconds)
	if seconds != nil {
		q.Age = new(time.Duration(*seconds * float64(time.Second)))
	}
	return q, err
}

// readQueue reads no runs but the open ones, which have an index of their own.
const readQueue = `
SELECT count(*), COALESCE(sum(total_jobs - jobs_running - jobs_completed - jobs_failed - jobs_canceled), 0), min(created_at),
  extract(epoch FROM now() - min(created_at))::double precision
FROM measurement_runs WHERE status IN ('queued', 'running')`

// A Backlog is what of the queue can be told at the same cost however long it is.
type Backlog struct {
	Runs   int           // queued or running, counted up to a bound
	Oldest time.Duration // how long the oldest has been there; 0: there is none
}

// ReadBacklog tells how much is open, counting so many runs at most.
func ReadBacklog(ctx context.Context, pool *pgxpool.Pool, most int) (b Backlog, err error) {
	var seconds float64
	err = pool.QueryRow(ctx, readBacklog, most).Scan(&b.Runs, &seconds)
	b.Oldest = time.Duration(seconds * float64(time.Second))
	return b, err
}

const readBacklog = `
SELECT (SELECT count(*) FROM (SELECT FROM measurement_runs WHERE status IN ('queued', 'running') ORDER BY created_at LIMIT $1) open),
  COALESCE((SELECT extract(epoch FROM now() - created_at) FROM measurement_runs WHERE status IN ('queued', 'running')
    ORDER BY created_at LIMIT 1), 0)::double precision`

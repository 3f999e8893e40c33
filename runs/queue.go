package runs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

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

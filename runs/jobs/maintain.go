package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/task"
)

// Tasks returns the background work of a dispatcher. Waiting claims get no jobs, and expired leases do not end, while
// no process runs it.
//
// Both tasks are prompt, because workers wait for them: a job that becomes claimable is handed out within a second, and
// one whose lease has ended within five. They are two, because a sweep may take long and must not delay claims that
// wait.
func (d *Dispatcher) Tasks() []task.Task {
	limit := 3 * d.cfg.Timeout // a try, a look for lost servers, and another try
	return []task.Task{
		{Name: "wake_claims", Every: pollEvery, Prompt: true, Timeout: limit, Run: d.onReachable(d.poll)},
		{Name: "end_leases", Every: sweepEvery, Prompt: true, Timeout: limit, Run: d.onReachable(d.sweepOnce)},
	}
}

// sweepEvery is the interval of sweeps. A lease is ended by the next sweep after its end.
const sweepEvery = time.Second

// onReachable returns f with the timeout of a transaction, repeated once if a server of the cluster is found to be
// unreachable.
func (d *Dispatcher) onReachable(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return d.cfg.Outage.Retry(ctx, func() error {
			ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
			defer cancel()
			return f(ctx)
		})
	}
}

func (d *Dispatcher) sweepOnce(ctx context.Context) error {
	_, err := d.Sweep(ctx)
	return err
}

// Sweep ends expired leases, and admits arrived runs and due retries. It works in small steps and returns how many jobs
// lost their lease.
func (d *Dispatcher) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		ended, err := d.endLeases(ctx, expiredLeases, citusExpired, false)
		if total += ended; err != nil {
			return total, err
		}
		if ended == 0 {
			break // none is left, or other processes have ended them
		}
	}
	// The loop has skipped leases whose runs are locked. For the overdue ones among them, endLeases waits.
	ended, err := d.endLeases(ctx, overdueLeases, citusOverdue, true)
	if total += ended; err != nil {
		return total, err
	}
	return total, d.admitBacklog(ctx)
}

// endLeases ends the leases that a query returns, in batches, and returns how many jobs lost theirs. A batch that hits
// a lock timeout is left to the next sweep. With byRun, each batch has one run, and the first timeout ends the sweep:
// waiting for many locked runs would delay leases that expire later.
func (d *Dispatcher) endLeases(ctx context.Context, sql, onCitus string, byRun bool) (ended int, err error) {
	var over []Settlement
	type row struct {
		Account, Run store.ID
		First, Last  int32
		Attempt      int16
	}
	// No lock is held between this query and the reports: apply checks each lease again.
	all, err := store.Collect(ctx, d.cfg.Pool, pgx.RowToStructByPos[row], sql, d.cfg.Outage.Reachable(onCitus))
	if err != nil {
		return 0, err
	}
	for _, r := range all {
		// One settlement for each job, as workers send them.
		for ordinal := r.First; ordinal <= r.Last; ordinal++ {
			over = append(over, Settlement{Key: Key{r.Account, r.Run, ordinal}, Attempt: int(r.Attempt), Outcome: expired})
		}
	}
	for len(over) > 0 {
		n := part(over)
		if byRun {
			n = partOfOneRun(over)
		}
		// The report has no worker, so no revocation concerns it.
		replies, err := d.reportBatch(ctx, []*report{{jobs: over[:n]}})
		over = over[n:]
		// The leases stay expired, so the next sweep finds them again.
		if store.IsLockTimeout(err) {
			if byRun {
				return ended, nil
			}
			continue
		}
		if err != nil {
			return ended, err
		}
		for _, reply := range replies[0].items {
			if reply.State == Settled {
				ended++
			}
		}
	}
	return ended, nil
}

// partOfOneRun returns how many settlements of the first one's run fit into a part.
func partOfOneRun(settlements []Settlement) int {
	first := settlements[0].Key
	n := slices.IndexFunc(settlements, func(s Settlement) bool { return s.Key.Account != first.Account || s.Key.Run != first.Run })
	if n < 0 {
		n = len(settlements)
	}
	return part(settlements[:n])
}

// admitBacklog admits arrived runs and due retries in a transaction.
func (d *Dispatcher) admitBacklog(ctx context.Context) error {
	return inTransaction(ctx, d.cfg.Pool, func(c *pgxpool.Conn) error {
		conn := c.Conn()
		var turn int64
		var b pgx.Batch
		batchBegin(&b, &turn)
		if err := conn.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		b = pgx.Batch{}
		if err := d.admitArrivalsAndRetries(ctx, conn, &b, turn); err != nil {
			return err
		}
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, &b).Close()
	})
}

package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"aiv/store"
)

// admitOnCitus is admitArrivals and admitDue on Citus. Each statement concerns only the servers of the accounts in its
// parameters. One statement with common table expressions would not do: Citus sends the result of each expression to
// every server.
func (d *Dispatcher) admitOnCitus(ctx context.Context, conn *pgx.Conn, turn int64) error {
	// Each step is one round trip: what waits, what is taken of it, and the rows that follow.
	w, err := d.readBacklogOnCitus(ctx, conn)
	if err != nil || w.empty() {
		return err
	}
	moved, err := w.take(ctx, conn)
	if err != nil {
		return err
	}
	return moved.insert(ctx, conn, turn)
}

// waitingKeys are the keys of the arrivals and the due leases that wait to be admitted.
type waitingKeys struct {
	arrived, canceled []runKey // runs that were created, and runs that were canceled
	due               leaseKeys
}

func (w *waitingKeys) empty() bool {
	return len(w.arrived)+len(w.canceled)+len(w.due.runs) == 0
}

// readBacklogOnCitus reads the keys for the accounts on reachable servers.
//
// A transaction that took an arrival may so far be committed only on the coordinator. The arrival is then still
// visible, but locked until the other server commits. deleteArrivals waits for that and then finds that it is gone.
func (d *Dispatcher) readBacklogOnCitus(ctx context.Context, conn *pgx.Conn) (*waitingKeys, error) {
	w := &waitingKeys{}
	var b pgx.Batch
	// Reachable replaces the empty text by its statement, and adds the accounts on reachable servers as the last
	// parameter.
	b.Queue("", d.cfg.Outage.Reachable(citusArrivals)).Query(func(rows pgx.Rows) error {
		var k runKey
		var canceled bool
		_, err := pgx.ForEachRow(rows, []any{&k.account, &k.run, &canceled}, func() error {
			if canceled {
				w.canceled = append(w.canceled, k)
			} else {
				w.arrived = append(w.arrived, k)
			}
			return nil
		})
		return err
	})
	b.Queue("", d.cfg.Outage.Reachable(citusDue)).Query(func(rows pgx.Rows) error {
		var account, run store.ID
		var ordinal int32
		_, err := pgx.ForEachRow(rows, []any{&account, &run, &ordinal}, func() error {
			w.due.add(account, run, ordinal)
			return nil
		})
		return err
	})
	return w, conn.SendBatch(ctx, &b).Close()
}

// take deletes the arrivals and the rows of canceled runs in job_queue, job_leases and job_holds, and makes due leases
// ready. It returns the rows that insert then writes.
func (w *waitingKeys) take(ctx context.Context, conn *pgx.Conn) (*admitted, error) {
	a := &admitted{}
	var b pgx.Batch
	if len(w.arrived) > 0 {
		accounts, runs := splitKeys(w.arrived)
		// This fails if another transaction has taken one of the runs, before anything is written for it.
		deleteArrivals(&b, accounts, runs, false)
		b.Queue(citusQueueOf, accounts, runs).Query(func(rows pgx.Rows) error { return a.queue.read(rows, &a.turns) })
	}
	if len(w.canceled) > 0 {
		accounts, runs := splitKeys(w.canceled)
		deleteArrivals(&b, accounts, runs, true)
		b.Queue(citusUnqueue, accounts, runs)
		// The leases of canceled runs become results, so they are read before they are deleted.
		b.Queue(citusEnded, accounts, runs).Query(a.ended.read)
		b.Queue(citusUnlease, accounts, runs)
		b.Queue(deleteHolds, accounts, runs)
	}
	if len(w.due.runs) > 0 {
		b.Queue(citusReady, w.due.accounts, w.due.runs, w.due.ordinals).Query(func(rows pgx.Rows) error {
			var account store.ID
			var provider string
			_, err := pgx.ForEachRow(rows, []any{&account, &provider}, func() error {
				a.turns.add(account, provider)
				return nil
			})
			return err
		})
	}
	return a, conn.SendBatch(ctx, &b).Close()
}

// deleteArrivals deletes arrivals. It fails with errChanged if another transaction has done so.
func deleteArrivals(b *pgx.Batch, accounts, runs []store.ID, canceled bool) {
	b.Queue(citusDeleteArrivals, accounts, runs, canceled).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(len(runs)) {
			return errChanged
		}
		return nil
	})
}

// admitted are the rows that admitOnCitus inserts.
type admitted struct {
	queue queueRows
	ended resultColumns
	turns turnKeys // of accounts with jobs that can be handed out now
}

// insert inserts the rows. turn is the turn of accounts that have none at a provider.
func (a *admitted) insert(ctx context.Context, conn *pgx.Conn, turn int64) error {
	var b pgx.Batch
	if q := &a.queue; len(q.runs) > 0 {
		b.Queue(citusEnqueue, q.accounts, q.runs, q.models, q.providers, q.created, q.first, q.last)
	}
	if e := &a.ended; len(e.runs) > 0 {
		b.Queue(citusEndJobs, e.accounts, e.runs, e.ordinals, e.attempts, e.started, e.finished)
	}
	if t := &a.turns; len(t.accounts) > 0 {
		b.Queue(citusAddTurns, t.accounts, t.providers, turn)
	}
	return conn.SendBatch(ctx, &b).Close()
}

// queueRows are rows of job_queue.
type queueRows struct {
	accounts, runs []store.ID
	models         []int16
	providers      []string
	created        []time.Time
	first, last    []int32
}

// read reads the fresh jobs of runs, a row for each model, and notes which accounts need a turn at which provider.
func (q *queueRows) read(rows pgx.Rows, turns *turnKeys) error {
	var account, run store.ID
	var model int16
	var provider string
	var created time.Time
	var first, last int32
	_, err := pgx.ForEachRow(rows, []any{&account, &run, &model, &provider, &created, &first, &last}, func() error {
		q.accounts, q.runs, q.models = append(q.accounts, account), append(q.runs, run), append(q.models, model)
		q.providers, q.created = append(q.providers, provider), append(q.created, created)
		q.first, q.last = append(q.first, first), append(q.last, last)
		turns.add(account, provider)
		return nil
	})
	return err
}

// resultColumns are rows of job_results of canceled jobs.
type resultColumns struct {
	leaseKeys
	attempts          []int16
	started, finished []time.Time
}

// read reads leases, each of which covers several jobs.
func (c *resultColumns) read(rows pgx.Rows) error {
	var account, run store.ID
	var first, last int32
	var attempt int16
	var started, finished time.Time
	_, err := pgx.ForEachRow(rows, []any{&account, &run, &first, &last, &attempt, &started, &finished}, func() error {
		for ordinal := first; ordinal <= last; ordinal++ {
			c.add(account, run, ordinal)
			c.attempts, c.started, c.finished = append(c.attempts, attempt), append(c.started, started), append(c.finished, finished)
		}
		return nil
	})
	return err
}

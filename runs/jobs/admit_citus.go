package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"aiv/store"
)

// admitOnCitus is admitArrivals and admitDue on Citus. Each statement concerns only the servers of the accounts in its parameters. One
// statement with common table expressions would not do: Citus sends the result of each expression to every server.
func (d *Dispatcher) admitOnCitus(ctx context.Context, conn *pgx.Conn, turn int64) error {
	var arrived, canceled, due leaseKeys // without ordinals
	var turns turnKeys
	var key struct {
		account, run store.ID
		ordinal      int32
		canceled     bool
		provider     string
	}
	// A transaction that has taken an arrival may be committed on the coordinator only. The arrival is then visible, and locked until
	// the other server has committed, too. deleteArrivals waits for that and then finds that the arrival is gone.
	var b pgx.Batch
	b.Queue("", d.outage.Reachable(citusArrivals)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&key.account, &key.run, &key.canceled}, func() error {
			if key.canceled {
				canceled.add(key.account, key.run, 0)
			} else {
				arrived.add(key.account, key.run, 0)
			}
			return nil
		})
		return err
	})
	b.Queue("", d.outage.Reachable(citusDue)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&key.account, &key.run, &key.ordinal}, func() error {
			due.add(key.account, key.run, key.ordinal)
			return nil
		})
		return err
	})
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}

	b = pgx.Batch{}
	var queue queueColumns
	var ended resultColumns
	if len(arrived.runs) > 0 {
		deleteArrivals(&b, arrived, false)
		b.Queue(citusQueueOf, arrived.accounts, arrived.runs).Query(func(rows pgx.Rows) error { return queue.read(rows, &turns) })
	}
	if len(canceled.runs) > 0 {
		deleteArrivals(&b, canceled, true)
		b.Queue(citusUnqueue, canceled.accounts, canceled.runs)
		b.Queue(citusEnded, canceled.accounts, canceled.runs).Query(ended.read)
		b.Queue(citusUnlease, canceled.accounts, canceled.runs)
		b.Queue(deleteHolds, canceled.accounts, canceled.runs)
	}
	if len(due.runs) > 0 {
		b.Queue(citusReady, due.accounts, due.runs, due.ordinals).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&key.account, &key.provider}, func() error {
				turns.add(key.account, key.provider)
				return nil
			})
			return err
		})
	}
	if b.Len() == 0 {
		return nil
	}
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}

	b = pgx.Batch{}
	if len(queue.runs) > 0 {
		b.Queue(citusEnqueue, queue.accounts, queue.runs, queue.models, queue.providers, queue.created, queue.first, queue.last)
	}
	if len(ended.runs) > 0 {
		b.Queue(citusEndJobs, ended.accounts, ended.runs, ended.ordinals, ended.attempts, ended.started, ended.finished)
	}
	anyTurns := make(map[store.ID]int64)
	if len(turns.accounts) > 0 {
		b.Queue(citusLatestTurns, turns.accounts).Query(func(rows pgx.Rows) error {
			var latest int64
			_, err := pgx.ForEachRow(rows, []any{&key.account, &latest}, func() error {
				anyTurns[key.account] = latest
				return nil
			})
			return err
		})
	}
	if err := conn.SendBatch(ctx, &b).Close(); err != nil || len(turns.accounts) == 0 {
		return err
	}
	latest := make([]int64, len(turns.accounts))
	for i, account := range turns.accounts {
		latest[i] = turn
		if n, ok := anyTurns[account]; ok {
			latest[i] = n
		}
	}
	_, err := conn.Exec(ctx, citusAddTurns, turns.accounts, turns.providers, turn, latest)
	return err
}

// deleteArrivals deletes arrivals. It fails with errChanged if another transaction has done so.
func deleteArrivals(b *pgx.Batch, arrivals leaseKeys, canceled bool) {
	b.Queue(citusDeleteArrivals, arrivals.accounts, arrivals.runs, canceled).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(len(arrivals.runs)) {
			return errChanged
		}
		return nil
	})
}

// queueColumns are rows of job_queue.
type queueColumns struct {
	accounts, runs []store.ID
	models         []int16
	providers      []string
	created        []time.Time
	first, last    []int32
}

func (q *queueColumns) read(rows pgx.Rows, turns *turnKeys) error {
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

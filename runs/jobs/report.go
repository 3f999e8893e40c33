package jobs

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/runs"
	"aiv/store"
)

// reportBatch is reportAll with a short wait for each lock, because the reports of the next batch wait for it. After a
// lock timeout, its reports are retried by run.
func (d *Dispatcher) reportBatch(ctx context.Context, reports []*report) ([]response[Reply], error) {
	return d.applyReports(ctx, reports, d.cfg.LockWait)
}

// reportAll applies reports in one transaction and returns a reply for each of their jobs.
func (d *Dispatcher) reportAll(ctx context.Context, reports []*report) ([]response[Reply], error) {
	return d.applyReports(ctx, reports, "")
}

// applyReports applies reports in a transaction. Each wait for a lock ends after lockTimeout, or if that is empty after
// the session's lock_timeout. Reports are applied in order, so the second settlement of an attempt is late.
func (d *Dispatcher) applyReports(ctx context.Context, reports []*report, lockTimeout string) ([]response[Reply], error) {
	out := make([]response[Reply], len(reports))
	err := inTransaction(ctx, d.cfg.Pool, func(conn *pgxpool.Conn) error {
		// One round trip to begin, lock and read.
		l, err := readLedger(ctx, conn.Conn(), reports, lockTimeout)
		if err != nil {
			return err
		}
		d.noteClock(l.now)
		var late []*lateReport
		for i, r := range reports {
			// No job of the report changes. The zero worker of a sweep is never revoked.
			if slices.Contains(l.revoked, r.from.Worker) {
				out[i] = response[Reply]{err: auth.ErrUnknownWorker}
				continue
			}
			replies := make([]Reply, len(r.jobs))
			for j := range r.jobs {
				var held bool
				if replies[j], held = l.apply(&r.jobs[j], r.from); !held {
					late = append(late, &lateReport{Settlement: &r.jobs[j], providers: r.from.Providers, reply: &replies[j]})
				}
			}
			out[i] = response[Reply]{items: replies}
		}
		if err := d.write(ctx, conn, l, late); err != nil {
			return err
		}
		// batchRecords has read the records in write.
		for _, r := range late {
			if r.Outcome == renewed {
				*r.reply = lateRenewal(r.record)
			} else {
				*r.reply = lateSettlement(r.record, r.Outcome)
			}
		}
		d.counts.reported(l)
		return nil
	})
	return out, err
}

// readLedger begins a transaction, takes the lock of claims if a provider is reported unavailable, locks the runs of
// the reports and reads the leases of their jobs.
func readLedger(ctx context.Context, conn *pgx.Conn, reports []*report, lockTimeout string) (*ledger, error) {
	l := newLedger()
	jobs := make(map[runKey][]int32)
	var workers []store.ID
	for _, r := range reports {
		workers = append(workers, r.from.Worker)
		for i := range r.jobs {
			k := r.jobs[i].Key
			run := runKey{k.Account, k.Run}
			// The zero Key of an id that was not valid has no run, so it is late and then stale.
			jobs[run] = append(jobs[run], k.Ordinal)
		}
	}
	keys := slices.SortedFunc(maps.Keys(jobs), compareRuns)
	accounts, ids := splitKeys(keys)
	var b pgx.Batch
	b.Queue("BEGIN")
	if lockTimeout != "" && !store.IsCitus(conn) { // a cluster would not pass the setting on, and ends deadlocks only later
		b.Queue(store.SetLockTimeout, lockTimeout)
	}
	if slices.ContainsFunc(reports, (*report).pauses) {
		b.Queue(lockClaims) // no claim that has read the provider as open commits after the pause
	}
	b.Queue(lockRuns, citusLockRuns, accounts, ids).Query(l.readRuns)
	var ranges leaseKeys
	var last []int32
	for _, k := range keys {
		// Jobs of one lease are mostly consecutive, so ranges need fewer lookups.
		for first, end := range consecutive(jobs[k]) {
			ranges.add(k.account, k.run, first)
			last = append(last, end)
		}
	}
	b.Queue(readClockAndRevoked, workers).QueryRow(func(row pgx.Row) error { return row.Scan(nil, &l.now, &l.revoked) })
	b.Queue(readLeases, citusLeases, ranges.accounts, ranges.runs, ranges.ordinals, last).Query(l.readLeases)
	return l, conn.SendBatch(ctx, &b).Close()
}

// pauses reports whether a job's provider is reported unavailable.
func (r *report) pauses() bool {
	return slices.ContainsFunc(r.jobs, func(s Settlement) bool { return s.Outcome == Unavailable })
}

// consecutive yields the ranges of consecutive numbers.
func consecutive(numbers []int32) iter.Seq2[int32, int32] {
	return func(yield func(first, last int32) bool) {
		slices.Sort(numbers)
		for i := 0; i < len(numbers); {
			first, last := numbers[i], numbers[i]
			for i++; i < len(numbers) && numbers[i] <= last+1; i++ {
				last = numbers[i]
			}
			if !yield(first, last) {
				return
			}
		}
	}
}

// readRuns reads the rows of lockRuns.
func (l *ledger) readRuns(rows pgx.Rows) error {
	for rows.Next() {
		r := &lockedRun{}
		if err := rows.Scan(&r.key.account, &r.key.run, &r.status, &r.total, &r.perModel, &r.returned, &r.completed, &r.failed); err != nil {
			return err
		}
		l.runs[r.key] = r
	}
	return rows.Err()
}

// readLeases reads the rows of the statement readLeases. It leaves out leases that are not held: no report can apply to
// them.
func (l *ledger) readLeases(rows pgx.Rows) error {
	for rows.Next() {
		e := &lease{}
		if err := rows.Scan(&e.account, &e.run, &e.first, &e.last, &e.provider, &e.created, &e.state, &e.attempt, &e.tries, &e.until,
			&e.startedAt, &e.worker); err != nil {
			return err
		}
		if r := l.runs[runKey{e.account, e.run}]; r != nil && e.state == stateHeld {
			r.addLease(e)
		}
	}
	return rows.Err()
}

// write writes the changes of the ledger, then reads what is recorded about late reports, and commits.
func (d *Dispatcher) write(ctx context.Context, conn *pgxpool.Conn, l *ledger, late []*lateReport) error {
	finished := l.finishRuns()
	gone, put, held := l.changedLeases()
	var b pgx.Batch
	if store.IsCitus(conn.Conn()) && len(held) > 0 { // the counts on the coordinator
		args := held.args()
		b.Queue(changeHolds, args...)
		b.Queue(deleteEmptyHolds, args[0], args[1])
	}
	if len(gone.ordinals) > 0 {
		deleteLeases.queue(&b, conn.Conn(), gone.accounts, gone.runs, gone.ordinals)
	}
	if len(put.first) > 0 {
		b.Queue(putLeases, append([]any{citusPutLeases}, put.args()...)...)
	}
	if err := l.writeResults(ctx, conn.Conn(), &b); err != nil {
		return err
	}
	if err := l.writePauses(ctx, conn); err != nil {
		return err
	}
	if d.cfg.Count != nil && len(l.results) > 0 {
		if err := d.cfg.Count(ctx, conn, &b, l.ended()); err != nil {
			return fmt.Errorf("count answers: %w", err)
		}
	}
	l.batchAttempts(&b)
	l.batchThrottles(&b)
	l.batchRuns(&b, d.cfg.Count != nil)
	// recordFinished reads the runs, so their changes are sent first.
	if len(finished) > 0 {
		if err := conn.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if err := d.recordFinished(ctx, conn, finished); err != nil {
			return err
		}
		b = pgx.Batch{}
	}
	// After all writes, so that a settlement that repeats one of this batch finds it.
	l.batchRecords(&b, late)
	// A repeated settlement changes nothing, but its commit waits until a synchronous standby has the first one's.
	b.Queue("COMMIT")
	return conn.SendBatch(ctx, &b).Close()
}

// recordFinished records that runs are final. It adds their jobs to the usage of the accounts and calls
// Config.Finished.
func (d *Dispatcher) recordFinished(ctx context.Context, tx store.Tx, keys []runKey) error {
	accounts, ids := splitKeys(keys)
	finished, err := runs.GetAll(ctx, tx, accounts, ids)
	if err != nil {
		return err
	}
	if err := runs.AddFinished(ctx, tx, finished); err != nil || d.cfg.Finished == nil {
		return err
	}
	return d.cfg.Finished(ctx, tx, finished)
}

// batchAttempts records the attempts that gave their jobs back, so that a repeated report gets the same reply.
func (l *ledger) batchAttempts(b *pgx.Batch) {
	if len(l.attempts) == 0 {
		return
	}
	var k leaseKeys
	var numbers []int16
	var outcomes []string
	for _, a := range l.attempts {
		k.add(a.key.Account, a.key.Run, a.key.Ordinal)
		numbers, outcomes = append(numbers, a.number), append(outcomes, string(a.outcome))
	}
	b.Queue(insertAttempts, k.accounts, k.runs, k.ordinals, numbers, outcomes)
}

// batchThrottles writes until when providers are throttled, in the order of codes, in which their rows are locked.
func (l *ledger) batchThrottles(b *pgx.Batch) {
	if len(l.throttles) == 0 {
		return
	}
	codes := slices.Sorted(maps.Keys(l.throttles))
	until := make([]time.Time, len(codes))
	for i, c := range codes {
		until[i] = l.throttles[c]
	}
	b.Queue(throttle, codes, until)
}

// batchRuns writes the changed runs. isCounted reports whether the jobs that have ended were counted.
func (l *ledger) batchRuns(b *pgx.Batch, isCounted bool) {
	var accounts, ids []store.ID
	var statuses []string
	var returned, completed, failed []int32
	for _, r := range l.runs {
		if r.changed {
			accounts, ids, statuses = append(accounts, r.key.account), append(ids, r.key.run), append(statuses, r.status)
			returned, completed, failed = append(returned, r.returned), append(completed, r.completed), append(failed, r.failed)
		}
	}
	if len(ids) > 0 {
		b.Queue(updateRuns, citusUpdateRuns, accounts, ids, statuses, returned, completed, failed, l.now, isCounted)
	}
}

package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/idempotency"
	"aiv/store"
	"aiv/store/schema"
)

// A Purger deletes final runs with all that belongs to them, in small steps. Each step is one transaction, so an
// interrupted purge leaves no run half deleted. Usage totals are kept: account_months counts the deleted runs as
// purged.
type Purger struct {
	Pool     *pgxpool.Pool
	Actor    string         // for the audit log
	Tables   []schema.Table // whose Purge is applied
	Progress func(Purged)   // called after each step; may be nil
}

// Purged counts what a purge deleted.
type Purged struct{ Runs, Jobs int64 }

const (
	maxPurgeRuns = 100    // in one step
	maxPurgeJobs = 20_000 // in one step of several runs
)

// FinishedBefore deletes the runs of all accounts that finished before a time. It keeps runs whose idempotency key may
// still be replayed: runs that are not older than remember. It returns a *store.ClockError if the clocks of the process
// and the database disagree. The audit log gets an entry before the first step, so that an interrupted purge is
// recorded too.
func (p *Purger) FinishedBefore(ctx context.Context, before time.Time, remember time.Duration) (total Purged, err error) {
	createdBefore, err := store.PurgeBefore(ctx, p.Pool, remember)
	if err != nil {
		return total, err
	}
	detail := map[string]any{"finished_before": store.FormatTime(before)}
	if err := p.audit(ctx, "runs.purge", detail); err != nil {
		return total, err
	}
	var accounts []store.ID
	// Accounts are read in the order of ids, a page at a time.
	for last := (store.ID{}); ; last = accounts[len(accounts)-1] {
		if accounts, err = store.Collect(ctx, p.Pool, pgx.RowTo[store.ID], listAccountIDs, last); err != nil {
			return total, err
		}
		if len(accounts) == 0 {
			break
		}
		for _, account := range accounts {
			// The keys of runs that were created after createdBefore may still be replayed, so these runs stay.
			if err := p.account(ctx, account, &before, &createdBefore, &total); err != nil {
				return total, fmt.Errorf("purge runs: %w", err)
			}
		}
	}
	detail["runs"], detail["jobs"] = total.Runs, total.Jobs
	return total, p.audit(ctx, "runs.purge.end", detail)
}

// Account cancels the open runs of an account and deletes all its runs, however recent. It must no longer be possible
// to create runs of the account. It records no events, and returns when no runs are left.
func (p *Purger) Account(ctx context.Context, account store.ID) (total Purged, err error) {
	for {
		if err := p.cancelOpen(ctx, account); err != nil {
			return total, err
		}
		// The loop ends when a round deletes nothing: a transaction that was in progress may have added a run.
		before := total
		if err := p.account(ctx, account, nil, nil, &total); err != nil {
			return total, fmt.Errorf("delete the runs of an account: %w", err)
		}
		if total == before {
			return total, nil
		}
	}
}

// cancelOpen cancels the open runs of an account, up to 100 at a time, without events.
func (p *Purger) cancelOpen(ctx context.Context, account store.ID) error {
	for {
		open, err := store.Collect(ctx, p.Pool, pgx.RowTo[store.ID], readOpen, account)
		if err != nil || len(open) == 0 {
			return err
		}
		for _, id := range open {
			if _, err := cancel(ctx, p.Pool, nil, account, id); err != nil {
				return err
			}
		}
	}
}

// purgeable is a run that a purge has read.
type purgeable struct {
	ID        store.ID
	CreatedAt time.Time
	Jobs      int32 // of the run
	Purgeable bool  // it is final, and finished before the bound
}

// account deletes runs of an account, oldest first. nil bounds select all final runs.
func (p *Purger) account(ctx context.Context, account store.ID, finishedBefore, createdBefore *time.Time, total *Purged) error {
	// This position precedes all runs.
	after, afterID := pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, store.ID{}
	for {
		found, err := store.Collect(ctx, p.Pool, pgx.RowToStructByPos[purgeable], readPurgeable,
			account, after, afterID, finishedBefore, createdBefore, maxPurgeRuns)
		if err != nil || len(found) == 0 {
			return err
		}
		last := found[len(found)-1]
		after, afterID = pgtype.Timestamptz{Time: last.CreatedAt, Valid: true}, last.ID

		var step []store.ID
		var jobs int32
		for i, run := range found {
			if run.Purgeable {
				step = append(step, run.ID)
				jobs += run.Jobs
			}
			// A step goes on while the next run fits, purgeable or not. A single run may exceed maxPurgeJobs.
			next := i + 1
			if len(step) == 0 || next < len(found) && jobs+found[next].Jobs <= maxPurgeJobs {
				continue
			}
			if err := p.step(ctx, account, step, total); err != nil {
				return err
			}
			step, jobs = nil, 0
		}
	}
}

// step deletes final runs in one transaction.
func (p *Purger) step(ctx context.Context, account store.ID, candidates []store.ID, total *Purged) error {
	// Prepare runs outside the transaction, because it may take a lock that claims wait for (jobs.Unqueue).
	for _, t := range p.Tables {
		if t.Purge.Prepare == nil {
			continue
		}
		if err := t.Purge.Prepare(ctx, p.Pool, account, candidates); err != nil {
			return err
		}
	}
	var done Purged
	err := store.Step(ctx, p.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockPurge); err != nil {
			return err
		}
		// Other transactions, too, lock rows of these tables before rows of runs.
		for _, t := range p.Tables {
			if t.Purge.Lock == nil {
				continue
			}
			if err := t.Purge.Lock(ctx, tx, account, candidates); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, lockPurgeable, account, candidates)
		if err != nil {
			return err
		}
		var ids []store.ID
		var created []time.Time
		var jobs []int32
		// Step may call this function again.
		done = Purged{}
		var run purgeable
		_, err = pgx.ForEachRow(rows, []any{&run.ID, &run.CreatedAt, &run.Jobs}, func() error {
			ids, created, jobs = append(ids, run.ID), append(created, run.CreatedAt), append(jobs, run.Jobs)
			done.Runs++
			done.Jobs += int64(run.Jobs)
			return nil
		})
		if err != nil {
			return err
		}
		// Rows of other packages that belong to the runs are deleted before the runs.
		for _, t := range p.Tables {
			if t.Purge.Delete == nil {
				continue
			}
			if err := t.Purge.Delete(ctx, tx, t.Name, account, ids); err != nil {
				return err
			}
		}
		// The keys of the runs may be used again from now on.
		if err := idempotency.Forget(ctx, tx, account, ids, created); err != nil {
			return err
		}
		var b pgx.Batch
		// Rows that refer to a run are deleted before it.
		for _, statement := range []string{deleteJobs, deleteModels, deleteUsage, deleteRuns} {
			b.Queue(statement, account, ids)
		}
		b.Queue(addPurged, account, created, jobs)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return err
	}
	total.Runs += done.Runs
	total.Jobs += done.Jobs
	if p.Progress != nil {
		p.Progress(*total)
	}
	return nil
}

func (p *Purger) audit(ctx context.Context, action string, detail map[string]any) error {
	return pgx.BeginFunc(ctx, p.Pool, func(tx pgx.Tx) error {
		return store.Audit(ctx, tx, store.Change{Actor: p.Actor, Action: action, Subject: "runs", Detail: detail})
	})
}

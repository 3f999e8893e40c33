package runs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// DefaultMaxUnfinishedJobs bounds the unfinished jobs of an account whose plan sets no bound.
const DefaultMaxUnfinishedJobs = 1_000_000

// A QuotaError means that a run exceeds its account's quota. Nothing was written, and the idempotency key is unused.
type QuotaError struct {
	Jobs       int64 // of the run
	Limit      int64 // the quota of the month, or the bound of unfinished jobs
	Remaining  int64
	Unfinished bool // whether Limit is the bound of unfinished jobs
}

func (e *QuotaError) Error() string {
	if e.Unfinished {
		return fmt.Sprintf("the run has %d jobs; %d of %d unfinished jobs remain", e.Jobs, e.Remaining, e.Limit)
	}
	return fmt.Sprintf("the run has %d jobs; %d of %d jobs remain this month", e.Jobs, e.Remaining, e.Limit)
}

// Detail returns the error as customers see it.
func (e *QuotaError) Detail() string {
	if e.Unfinished {
		return fmt.Sprintf("The account may have at most %d unfinished jobs (%d left). The run has %d.", e.Limit, e.Remaining, e.Jobs)
	}
	return fmt.Sprintf("The account's quota is %d jobs per month (%d left). The run has %d.", e.Limit, e.Remaining, e.Jobs)
}

// usedJobs is what an account has ordered in the current month, and how many of all its jobs are unfinished.
type usedJobs struct{ ordered, unfinished int64 }

// spend adds a run to what is used, or returns why it does not fit. An error changes nothing, so a smaller run of the
// same batch may still fit.
func (l limit) spend(used *usedJobs, jobs int64) *QuotaError {
	if l.quota != nil && used.ordered+jobs > *l.quota {
		return &QuotaError{Jobs: jobs, Limit: *l.quota, Remaining: max(0, *l.quota-used.ordered)}
	}
	if used.unfinished+jobs > l.maxUnfinished {
		return &QuotaError{Jobs: jobs, Limit: l.maxUnfinished, Remaining: max(0, l.maxUnfinished-used.unfinished), Unfinished: true}
	}
	used.ordered += jobs
	used.unfinished += jobs
	return nil
}

// writeMetered writes the runs of a batch that fit within the limits of their accounts. It locks the accounts' months,
// in the order of accounts, until its commit. So it decides exactly across any number of processes: what other
// transactions have ordered is committed, and nothing can be ordered in between. A run whose key is taken uses nothing.
func (r *Runs) writeMetered(ctx context.Context, batch []*pending, wait lockWait) (results []writeResult, err error) {
	err = pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		results, err = r.writeFitting(ctx, tx, batch, wait)
		// Nothing was written: the rows of months that lockMonths added are rolled back too.
		if err == nil && !slices.ContainsFunc(results, func(w writeResult) bool { return w.written }) {
			err = errNothingFits
		}
		return err
	})
	if errors.Is(err, errNothingFits) {
		return results, nil
	}
	return results, err
}

// retryMetered is writeMetered for the runs of one account after their batch has failed. If the wait for a key times
// out, the runs are written one by one, so that only the runs whose key is in use fail.
func (r *Runs) retryMetered(ctx context.Context, batch []*pending) ([]writeResult, error) {
	results, err := r.writeMetered(ctx, batch, lockWait{})
	if !waitedForKey(err) {
		return results, err
	}
	results = make([]writeResult, len(batch))
	inUse := make(map[any]bool)
	for i, p := range batch {
		if inUse[p.key()] {
			results[i].inUse = true
			continue
		}
		// Each wait is short, because further runs of the account wait behind this one.
		one, err := r.writeMetered(ctx, batch[i:i+1], lockWait{most: batchLockWait})
		switch {
		case waitedForKey(err):
			inUse[p.key()], results[i].inUse = true, true
		case err != nil:
			return nil, err // those that are written are found by their keys
		default:
			results[i] = one[0]
		}
	}
	return results, nil
}

// writeFitting is writeMetered in a transaction that its caller ends.
func (r *Runs) writeFitting(ctx context.Context, tx pgx.Tx, batch []*pending, wait lockWait) ([]writeResult, error) {
	// From here on nothing of these accounts changes until the commit.
	used, taken, err := lockMonths(ctx, tx, batch, wait)
	if err != nil {
		return nil, err
	}
	if err := countFinished(ctx, tx, batch, used); err != nil {
		return nil, err
	}
	results := make([]writeResult, len(batch))
	var fitting []*pending
	var at []int // index of each in batch
	for i, p := range batch {
		key := p.key()
		if taken[key] {
			continue // its result stays zero, which means that its key is taken
		}
		if results[i].quota = p.request.Proposal.Orderer.limit().spend(used[p.run.AccountID], int64(p.run.TotalJobs)); results[i].quota != nil {
			continue
		}
		taken[key] = true // for later duplicates in this batch
		fitting, at = append(fitting, p), append(at, i)
	}
	if len(fitting) == 0 {
		return results, nil
	}
	// A key may have been taken since lockMonths looked it up. insertTx then does not write its run.
	inserted, err := r.insertTx(ctx, tx, fitting)
	// inserted is nil after an error.
	for k, i := range at[:len(inserted)] {
		results[i] = inserted[k]
	}
	return results, err
}

// account is the batcher's key of metered runs.
func (p *pending) account() any { return p.run.AccountID }

// errNothingFits rolls back the transaction of a batch without a run to write, so that no commit waits for the disk.
var errNothingFits = errors.New("no run fits")

// lockMonths locks the current months of the accounts of a batch, and returns what each has used and which keys of the
// batch are taken.
func lockMonths(ctx context.Context, tx pgx.Tx, batch []*pending, wait lockWait) (used map[store.ID]*usedJobs, taken map[any]bool, err error) {
	most := maxUsed(batch)
	accounts := slices.SortedFunc(maps.Keys(most), store.ID.Compare)
	bounds := make([]int64, len(accounts)) // the values of most, by account
	used, taken = make(map[store.ID]*usedJobs), make(map[any]bool)
	for i, a := range accounts {
		bounds[i], used[a] = most[a], new(usedJobs)
	}
	columns := newBatchColumns(batch)

	var b pgx.Batch
	b.Queue(`SELECT ` + store.BoundIdle) // other runs of the accounts wait
	if sql, arg := wait.setting(); sql != "" {
		b.Queue(sql, arg)
	}
	b.Queue(beginMonths, accounts, bounds)
	b.Queue(lockMonthRows, store.OnCitus(citusLockMonthRows), accounts, bounds)
	b.Queue(readUsed, accounts).Query(func(rows pgx.Rows) error {
		var account store.ID
		var u usedJobs
		_, err := pgx.ForEachRow(rows, []any{&account, &u.ordered, &u.unfinished}, func() error {
			*used[account] = u
			return nil
		})
		return err
	})
	b.Queue(takenKeys, store.OnCitus(citusTakenKeys), columns.accounts, columns.methods, columns.routes, columns.keys).Query(func(rows pgx.Rows) error {
		var i int
		_, err := pgx.ForEachRow(rows, []any{&i}, func() error {
			// Ordinality counts from 1.
			taken[batch[i-1].key()] = true
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, nil, fmt.Errorf("locking the accounts' months: %w", err)
	}
	return used, taken, nil
}

// maxUsed returns, for each account, the largest usage of this month at which the smallest of its runs still fits.
// Without a quota every usage fits.
func maxUsed(batch []*pending) map[store.ID]int64 {
	most := make(map[store.ID]int64)
	for _, p := range batch {
		n := int64(math.MaxInt64)
		if quota := p.request.Proposal.Orderer.limit().quota; quota != nil {
			n = *quota - int64(p.run.TotalJobs)
		}
		if before, ok := most[p.run.AccountID]; !ok || n > before {
			most[p.run.AccountID] = n
		}
	}
	return most
}

// countFinished subtracts the finished jobs of running runs from the unfinished jobs of an account if its runs would
// not fit otherwise. readUsed counts them as unfinished. The exact number is read only if it matters, because that
// takes longer.
func countFinished(ctx context.Context, tx pgx.Tx, batch []*pending, used map[store.ID]*usedJobs) error {
	wanted := make(map[store.ID]int64)
	var accounts []store.ID
	for _, p := range batch {
		id := p.run.AccountID
		// All runs before this one are assumed to fit.
		wanted[id] += int64(p.run.TotalJobs)
		if used[id].unfinished+wanted[id] > p.request.Proposal.Orderer.limit().maxUnfinished && !slices.Contains(accounts, id) {
			accounts = append(accounts, id)
		}
	}
	if len(accounts) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, readUnfinished, accounts)
	if err != nil {
		return err
	}
	var account store.ID
	var unfinished int64
	_, err = pgx.ForEachRow(rows, []any{&account, &unfinished}, func() error {
		used[account].unfinished = unfinished
		return nil
	})
	return err
}

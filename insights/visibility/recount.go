package visibility

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A step of a recount has at most maxChunk answers of one run, and its transaction is short.

// lateSettlement is longer than a transaction that settles jobs can take. A transaction that read the revision before a
// change may insert a stale chunk until it ends, so accounts are checked this long after their latest change.
const lateSettlement = "10 minutes"

// Recount recounts the answers of stale chunks, newest run first, and counts those that were stored before facts were
// kept. Accounts take turns of one step each; an account whose brands change during a long recount joins them. If
// the step of one account fails, because of damaged facts for example, Recount continues with the others, and returns
// the first such error at the end. It returns how many answers it counted, also if the database becomes unavailable.
func (c *Counter) Recount(ctx context.Context) (answers int64, err error) {
	var accounts []store.ID
	var failed error
	// The accounts are looked up again each second, because a recount may take hours.
	for looked := (time.Time{}); ; {
		// The first pass always looks, as looked is zero.
		if now := time.Now(); now.Sub(looked) >= time.Second {
			found, err := c.accounts(ctx)
			if err != nil {
				return answers, err
			}
			looked = now
			accounts = append(accounts, slices.DeleteFunc(found, func(a store.ID) bool { return slices.Contains(accounts, a) })...)
		}
		if len(accounts) == 0 {
			return answers, failed
		}
		var left []store.ID
		// One step for each account, so that a large one does not delay the others.
		for _, account := range accounts {
			n, more, err := c.recountStep(ctx, account)
			answers += n
			c.recounted.Add(uint64(n))
			switch {
			case err != nil && !store.ConcernsOnePart(err):
				return answers, err
			case err != nil:
				failed = cmp.Or(failed, fmt.Errorf("account %s: %w", account.Text("acct"), err))
			case more:
				left = append(left, account)
			}
		}
		// An account whose step has failed is left out until the accounts are looked up again.
		accounts = left
	}
}

// accounts returns the accounts that may have answers to recount. Once a minute it looks at all accounts, otherwise at
// accounts whose brands have changed recently.
func (c *Counter) accounts(ctx context.Context) ([]store.ID, error) {
	// The cost of looking at all accounts grows with their number. It finds what the look at recent changes misses,
	// such as chunks that were inserted while no process ran Recount.
	all := time.Since(c.looked) >= time.Minute
	statement, onCitus := changedAccounts, citusChangedAccounts
	if all {
		statement, onCitus, c.looked = behindAccounts, citusBehindAccounts, time.Now()
	}
	var found []store.ID
	err := c.cfg.Outage.Retry(ctx, func() (err error) {
		found, err = store.Collect(ctx, c.cfg.Pool, pgx.RowTo[store.ID], statement, c.cfg.Outage.Reachable(onCitus))
		return err
	})
	if all && err == nil {
		c.mu.Lock()
		c.behind = slices.Clone(found)
		c.mu.Unlock()
	}
	return found, err
}

const (
	changedAccounts = `SELECT account_id FROM brand_revisions WHERE changed_at > now() - interval '` + lateSettlement + `'`

	// behindAccounts adds the accounts without a finished recount, with stale chunks, or with a final run in the
	// backlog.
	behindAccounts = changedAccounts + `
UNION
SELECT b.account_id FROM brand_revisions b
WHERE NOT EXISTS (SELECT FROM visibility_recounts c WHERE c.account_id = b.account_id AND c.revision >= b.revision)
  -- A chunk that was inserted after the recount had ended, when no process looked for it.
  OR EXISTS (SELECT FROM visibility_facts f WHERE f.account_id = b.account_id AND NOT f.deleted AND f.revision < b.revision)
UNION
SELECT l.account_id FROM visibility_backlog l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id
WHERE r.finished_at IS NOT NULL`
)

// recountStep recounts some answers of an account. more reports whether more answers may be left.
func (c *Counter) recountStep(ctx context.Context, account store.ID) (answers int64, more bool, err error) {
	err = pgx.BeginFunc(ctx, c.cfg.Pool, func(tx pgx.Tx) error {
		b, err := c.brands(ctx, tx, account)
		if err != nil {
			return err
		}
		stale, err := lockStale(ctx, tx, account, b.version.Revision)
		if err != nil {
			return err
		}
		// Stale chunks come before the backlog. The recount ends when both have nothing left.
		if len(stale.facts) == 0 {
			answers, more, err = c.backlogStep(ctx, tx, account, b)
			if err != nil || more {
				return err
			}
			// Stale chunks that another process has locked are recounted there.
			_, err = tx.Exec(ctx, endRecount, account, b.version.Revision)
			return err
		}
		// The lock keeps the run from being purged, and answers from being deleted, until the step commits.
		r, err := c.lockCountedRun(ctx, tx, account, stale.run)
		if err != nil || r == nil {
			return err
		}
		more = true
		// Facts of answers that are deleted keep their revision: their chunks are marked, and so frozen.
		facts, deleted, n, err := c.again(ctx, tx, b, r, stale.facts)
		if err != nil {
			return err
		}
		answers = n
		// The old chunks are deleted in the batch that inserts the new ones, whose keys may be equal.
		batch := &stale.delete
		batchChunks(batch, newChunks(r, b.version.Revision, facts, b.isOwn, false, true))
		for revision, of := range deleted {
			batchChunks(batch, newChunks(r, revision, of, b.isOwn, true, true))
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return 0, more, err // nothing of the step was committed
	}
	return answers, more, nil
}

// endRecount records that an account has no stale chunks at a revision, unless some are left or the account has been
// erased.
const endRecount = `
INSERT INTO visibility_recounts AS c (account_id, revision)
SELECT b.account_id, $2::bigint FROM brand_revisions b
WHERE b.account_id = $1 AND NOT EXISTS (SELECT FROM visibility_facts WHERE account_id = $1 AND NOT deleted AND revision < $2)
ON CONFLICT (account_id) DO UPDATE SET revision = excluded.revision WHERE c.revision < excluded.revision`

// staleFacts are the facts of stale chunks of a run.
type staleFacts struct {
	run    store.ID
	facts  []staleFact
	delete pgx.Batch // of the chunks
}

// A staleFact is a fact with the revision of its chunk.
type staleFact struct {
	Fact
	revision int64
}

// lockStale locks stale chunks of one run: the newest run with stale chunks that no other process has locked.
func lockStale(ctx context.Context, tx pgx.Tx, account store.ID, revision int64) (*staleFacts, error) {
	s := &staleFacts{}
	rows, err := tx.Query(ctx, selectStale, account, revision)
	if err != nil {
		return nil, err
	}
	var run store.ID
	var first, last int32
	var of int64
	var column []byte
	_, err = pgx.ForEachRow(rows, []any{&run, &first, &last, &of, &column}, func() error {
		facts, err := decodeFacts(column)
		if err != nil || len(s.facts) > 0 && (run != s.run || len(s.facts)+len(facts) > maxChunk) {
			return err // it stays locked until the end of the step
		}
		s.run = run
		for i := range facts {
			s.facts = append(s.facts, staleFact{facts[i], of})
		}
		s.delete.Queue(deleteChunk, account, run, first, last)
		return nil
	})
	return s, err
}

// selectStale returns some stale chunks of an account. Ids of runs are ordered by time, so the newest run is first.
const selectStale = `
SELECT run_id, first_ordinal, last_ordinal, revision, facts FROM visibility_facts
WHERE account_id = $1 AND NOT deleted AND revision < $2
ORDER BY run_id DESC, first_ordinal LIMIT 32 FOR UPDATE SKIP LOCKED`

// again recounts the ok answers of stale facts and keeps the other facts. It returns the facts of answers that are no
// longer stored separately, by revision.
func (c *Counter) again(ctx context.Context, tx pgx.Tx, b *accountBrands, r *countedRun, stale []staleFact) (
	facts []Fact, deleted map[int64][]Fact, answers int64, err error) {
	// index has the ok facts whose answers have not been found yet.
	index := make(map[int32]int, len(stale))
	var ordinals []int32
	for i := range stale {
		if stale[i].Status == OK {
			ordinals = append(ordinals, stale[i].Ordinal)
			index[stale[i].Ordinal] = i
		} else {
			facts = append(facts, stale[i].Fact)
		}
	}
	err = c.cfg.Answers(ctx, tx, r.account, r.id, ordinals, func(stored []Job) error {
		facts = append(facts, c.count(b, r, stored)...)
		answers += int64(len(stored))
		// The answer was found, so it is not deleted.
		for i := range stored {
			delete(index, stored[i].Ordinal)
		}
		return nil
	})
	if err != nil || len(index) == 0 {
		return facts, nil, answers, err
	}
	deleted = make(map[int64][]Fact)
	for _, i := range index {
		deleted[stale[i].revision] = append(deleted[stale[i].revision], stale[i].Fact)
	}
	return facts, deleted, answers, nil
}

// backlogStep counts answers of the newest final run that were stored without facts.
func (c *Counter) backlogStep(ctx context.Context, tx pgx.Tx, account store.ID, b *accountBrands) (answers int64, more bool, err error) {
	var id store.ID
	var after int32
	err = tx.QueryRow(ctx, lockBacklog, account).Scan(&id, &after)
	// Nothing is left, or other processes have locked the rest.
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	r, err := c.lockCountedRun(ctx, tx, account, id)
	if err != nil || r == nil {
		return 0, false, err
	}
	// A step concerns a range of ordinals, and counted_to remembers how far the steps have come.
	last := after + maxChunk
	jobs, err := c.cfg.Ended(ctx, tx, account, id, after, last)
	if err != nil {
		return 0, false, err
	}
	counted, err := countedOrdinals(ctx, tx, account, id, after, last)
	if err != nil {
		return 0, false, err
	}
	// missing are the jobs whose stored answers are counted below.
	var missing []int32
	var facts []Fact
	for _, job := range jobs {
		switch {
		// It was settled with facts, by a process of the present version.
		case counted[job.Ordinal]:
		case job.Failed:
			facts = append(facts, Fact{Ordinal: job.Ordinal, Status: Failed})
		case !job.Stored: // deleted by age before it was ever counted
			facts = append(facts, Fact{Ordinal: job.Ordinal, Status: Empty})
		default:
			missing = append(missing, job.Ordinal)
		}
	}
	err = c.cfg.Answers(ctx, tx, account, id, missing, func(stored []Job) error {
		facts = append(facts, c.count(b, r, stored)...)
		answers += int64(len(stored))
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	var batch pgx.Batch
	batchChunks(&batch, newChunks(r, b.version.Revision, facts, b.isOwn, false, true))
	// All ranges of the run have been counted.
	if last >= r.total {
		batch.Queue(`DELETE FROM visibility_backlog WHERE account_id = $1 AND run_id = $2`, account, id)
	} else {
		batch.Queue(`UPDATE visibility_backlog SET counted_to = $3 WHERE account_id = $1 AND run_id = $2`, account, id, last)
	}
	// The run's counter must equal its jobs with facts; see Invariants.
	if len(facts) > 0 {
		batch.Queue(addCounted, account, id, len(facts))
	}
	return answers, true, tx.SendBatch(ctx, &batch).Close()
}

const addCounted = `UPDATE measurement_runs SET jobs_counted = jobs_counted + $3 WHERE account_id = $1 AND id = $2`

// lockBacklog locks the newest final run that has answers without facts.
const lockBacklog = `
SELECT l.run_id, l.counted_to FROM visibility_backlog l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id
WHERE l.account_id = $1 AND r.account_id = $1 AND r.finished_at IS NOT NULL
ORDER BY l.run_id DESC LIMIT 1 FOR UPDATE OF l SKIP LOCKED`

// countedOrdinals returns which jobs of a run have facts, of those after an ordinal and up to another.
func countedOrdinals(ctx context.Context, tx pgx.Tx, account, run store.ID, after, last int32) (map[int32]bool, error) {
	counted := make(map[int32]bool)
	return counted, eachFact(ctx, tx, func(f *Fact) { counted[f.Ordinal] = true }, selectFactsBetween, account, run, after, last)
}

// FindUncounted adds to the backlog the runs with jobs that were settled without facts by an earlier version of the
// program, which may have run beside this one. They are counted when they are final.
func (c *Counter) FindUncounted(ctx context.Context) error {
	_, err := c.cfg.Pool.Exec(ctx, `
INSERT INTO visibility_backlog (account_id, run_id)
SELECT account_id, id FROM measurement_runs
WHERE NOT answers_deleted AND started_at > now() - interval '8 days' AND jobs_counted < jobs_completed + jobs_failed
ON CONFLICT DO NOTHING`)
	return err
}

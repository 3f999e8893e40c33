package visibility

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A Backlog is what waits to be recounted.
type Backlog struct {
	// Answers counts the ended jobs with stale facts or without facts, in up to [MaxBacklog] rows of each kind.
	Answers int64
	// Oldest is the time since the oldest brand change whose recount has not ended; 0 if there is none.
	Oldest time.Duration
}

// MaxBacklog bounds the accounts, chunks and runs that a Backlog counts.
const MaxBacklog = 10_000

// ReadBacklog reads the backlog of all accounts.
func ReadBacklog(ctx context.Context, db store.Querier) (Backlog, error) {
	return readBacklog(ctx, db, selectBehind, MaxBacklog)
}

// Backlog reads the backlog of the accounts that Recount has found. So its cost does not grow with the number of
// accounts.
func (c *Counter) Backlog(ctx context.Context, db store.Querier) (Backlog, error) {
	c.mu.Lock()
	known := c.behind
	c.mu.Unlock()
	return readBacklog(ctx, db, selectKnownBehind, MaxBacklog, known)
}

// readBacklog reads the backlog of the accounts that the statement behind returns, with their revisions and since when
// they wait.
func readBacklog(ctx context.Context, db store.Querier, behind string, args ...any) (b Backlog, err error) {
	rows, err := db.Query(ctx, behind, args...)
	if err != nil {
		return b, err
	}
	var account store.ID
	var revision int64
	var since, now time.Time
	var accounts []store.ID
	var revisions []int64
	_, err = pgx.ForEachRow(rows, []any{&account, &revision, &since, &now}, func() error {
		accounts, revisions = append(accounts, account), append(revisions, revision)
		// Both times are the database's.
		b.Oldest = max(b.Oldest, now.Sub(since))
		return nil
	})
	if err != nil {
		return b, err
	}
	var stale, missing int64
	// The arrays have the same length: each account has its own revision.
	if err := db.QueryRow(ctx, countStale, accounts, revisions, MaxBacklog).Scan(&stale); err != nil {
		return b, err
	}
	err = db.QueryRow(ctx, countMissing, MaxBacklog).Scan(&missing)
	b.Answers = stale + missing
	return b, err
}

const (
	// selectBehind returns accounts whose recount has not ended at the present revision.
	selectBehind = `
SELECT b.account_id, b.revision, b.pending_since, now() FROM brand_revisions b
WHERE NOT EXISTS (SELECT FROM visibility_recounts c WHERE c.account_id = b.account_id AND c.revision >= b.revision)
LIMIT $1`

	// selectKnownBehind is selectBehind for the accounts $2 and the accounts with a recent change, which an index
	// finds.
	selectKnownBehind = `
SELECT b.account_id, b.revision, b.pending_since, now() FROM brand_revisions b
WHERE (b.account_id = ANY ($2) OR b.changed_at > now() - interval '` + lateSettlement + `')
  AND NOT EXISTS (SELECT FROM visibility_recounts c WHERE c.account_id = b.account_id AND c.revision >= b.revision)
LIMIT $1`

	// countStale counts the jobs of stale chunks, in up to $3 chunks.
	countStale = `
SELECT COALESCE(sum(jobs), 0) FROM (
  SELECT f.jobs FROM unnest($1::uuid[], $2::bigint[]) AS k (account_id, revision)
  JOIN visibility_facts f ON f.account_id = k.account_id AND f.revision < k.revision AND NOT f.deleted LIMIT $3) s`

	// countMissing counts the ended jobs without facts, in up to $1 runs.
	countMissing = `
SELECT COALESCE(sum(jobs), 0) FROM (
  SELECT r.jobs_completed + r.jobs_failed - r.jobs_counted AS jobs
  FROM visibility_backlog l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id LIMIT $1) s`
)

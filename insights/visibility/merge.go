package visibility

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// manySmall is the number of small chunks at which the chunks of a run in progress are merged.
const manySmall = 64

// Merge merges the small chunks of runs that are final, or that have manySmall. Each transaction merges the chunks of
// one run. If it fails for one run, because of damaged facts for example, Merge continues with the others, and returns
// the first such error at the end. It returns how many chunks it replaced.
func (c *Counter) Merge(ctx context.Context) (replaced int64, err error) {
	// Each call finds up to a thousand runs. The task is repeated, so the others come later.
	found, err := store.Collect(ctx, c.cfg.Pool, pgx.RowToStructByPos[runKey], selectSmall, manySmall)
	if err != nil {
		return 0, err
	}
	var failed error
	for _, k := range found {
		n, err := c.mergeRun(ctx, k.Account, k.Run)
		switch {
		case err != nil && !store.ConcernsOnePart(err):
			return replaced, err
		case err != nil:
			failed = cmp.Or(failed, fmt.Errorf("account %s, run %s: %w", k.Account.Text("acct"), k.Run.Text("run"), err))
		}
		replaced += n
	}
	return replaced, failed
}

// selectSmall returns runs whose small chunks are to be merged. Only a thousand damaged runs would keep others out.
const selectSmall = `
SELECT f.account_id, f.run_id
FROM (SELECT account_id, run_id, count(*) AS chunks FROM visibility_facts WHERE small GROUP BY account_id, run_id) f
JOIN measurement_runs r ON r.account_id = f.account_id AND r.id = f.run_id
WHERE f.chunks >= $1 OR r.finished_at IS NOT NULL
LIMIT 1000`

// lockSmall locks small chunks of a run. It skips chunks that another process is merging or recounting.
const lockSmall = `
SELECT first_ordinal, last_ordinal, revision, deleted, facts FROM visibility_facts
WHERE account_id = $1 AND run_id = $2 AND small ORDER BY first_ordinal LIMIT 2000 FOR UPDATE SKIP LOCKED`

// mergeRun replaces the small chunks of a run. It does not merge chunks of different revisions.
func (c *Counter) mergeRun(ctx context.Context, account, id store.ID) (replaced int64, err error) {
	err = pgx.BeginFunc(ctx, c.cfg.Pool, func(tx pgx.Tx) error {
		replaced = 0
		r, err := c.lockCountedRun(ctx, tx, account, id)
		// A run that is being deleted, or whose answers are, is left alone.
		if err != nil || r == nil {
			return err
		}
		rows, err := tx.Query(ctx, lockSmall, account, id)
		if err != nil {
			return err
		}
		// A chunk has one revision and one mark of deletion, so only chunks with equal ones are merged.
		type kind struct {
			revision int64
			deleted  bool
		}
		facts := make(map[kind][]Fact)
		var b pgx.Batch
		var k kind
		var first, last int32
		var column []byte
		if _, err := pgx.ForEachRow(rows, []any{&first, &last, &k.revision, &k.deleted, &column}, func() error {
			more, err := decodeFacts(column)
			facts[k] = append(facts[k], more...)
			b.Queue(deleteChunk, account, id, first, last)
			return err
		}); err != nil || b.Len() == 0 {
			return err
		}
		// No locked chunk has a later revision than the brands that are read here. The sums of chunks with an older
		// revision are never read.
		isOwn, err := ownBrands(ctx, tx, account)
		if err != nil {
			return err
		}
		// At this point the batch has one deletion for each chunk and nothing else.
		replaced = int64(b.Len())
		// A final run gets no more chunks, so its chunks are whole even if they are small.
		for k, all := range facts {
			batchChunks(&b, newChunks(r, k.revision, all, isOwn, k.deleted, r.final))
		}
		return tx.SendBatch(ctx, &b).Close()
	})
	return replaced, err
}

package limits_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store/storetest"
)

// TestHeldSnapshot: another session's snapshot keeps the old versions of a minute's row. They make that minute's counts
// dearer and no other's, however long the snapshot is held.
func TestHeldSnapshot(t *testing.T) {
	c := newClock(t)
	key, limiter := c.key(t, 1_000_000), c.process(t)
	holder, table := storetest.PieceOf(t, c.pool, "api_rate_limit_buckets", c.account)
	tx, err := holder.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	defer tx.Rollback(t.Context())
	must(t, ignore(tx.Exec(t.Context(), `SELECT count(*) FROM `+table)))
	first := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	var blocks []int
	for minute, counts := range []int{1, 200, 200, 1} {
		start := first.Add(time.Duration(minute) * time.Minute)
		c.to(t, start.Format(time.RFC3339))
		for range counts {
			must(t, ignore(limiter.Admit(t.Context(), key.Hash)))
		}
		cost := storetest.Explain(t, holder, `SELECT FROM `+table+` WHERE account_id = $1 AND credential_id = $2 AND window_start = $3`,
			c.account, key.id, start)
		blocks = append(blocks, cost.Pages)
	}
	if blocks[1] <= blocks[0] {
		t.Errorf("blocks read for a count in each minute: %v; the snapshot keeps nothing, so this test proves nothing", blocks)
	}
	if blocks[2] > blocks[1]+2 || blocks[3] > blocks[0]+2 {
		t.Errorf("blocks read for a count in each minute: %v; they grow from minute to minute", blocks)
	}
}

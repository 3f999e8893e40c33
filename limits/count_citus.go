package limits

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/store"
)

// countOnCitus is countRequests on Citus, after the state was read: now is the database's time, in whose minute the requests are
// counted, and the revision of the credentials was the expected one. Both were read after the requests arrived.
func countOnCitus(ctx context.Context, conn *pgx.Conn, now time.Time, catalogRevision int64, order []int, credentials []*auth.Credential, tallies []tally) error {
	start := now.Truncate(window)
	args := []any{pgx.QueryExecModeExec}
	index := make(map[store.ID]int, len(order)) // in tallies
	for _, i := range order {
		c := credentials[i]
		if c.ExpiresAt != nil && !c.ExpiresAt.After(now) {
			continue
		}
		index[c.ID] = i
		n := min(tallies[i].requests, int32(c.RateLimit))
		args = append(args, c.AccountID.UUID(), c.ID.UUID(), start, n, n, c.RateLimit)
	}
	if len(index) == 0 {
		return nil
	}
	rows, err := conn.Query(ctx, citusCount+store.ValuesOnCitus(len(index), citusCountRow)+addCounts, args...)
	if err != nil {
		return err
	}
	var id store.ID
	var t tally
	_, err = pgx.ForEachRow(rows, []any{&id, &t.start, &t.used, &t.granted}, func() error {
		i := index[id]
		t.credential, t.requests, t.now, t.catalogRevision = credentials[i], tallies[i].requests, now, catalogRevision
		tallies[i] = t
		return nil
	})
	return err
}

const (
	citusCount    = `INSERT INTO api_rate_limit_buckets AS b (account_id, credential_id, window_start, used, granted, rate_limit) VALUES `
	citusCountRow = `$::uuid, $::uuid, $::timestamptz, $::integer, $::integer, $::integer`
)

package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// countOnCitus is countRequests on Citus, after the state was read: the requests are counted in the minute of s.now,
// and s.revision was the expected one. Both were read after the requests arrived.
func countOnCitus(ctx context.Context, conn *pgx.Conn, s state, rest []*tally) error {
	d := decision{start: s.now.Truncate(window), state: s}
	args := []any{pgx.QueryExecModeExec}
	valid := 0
	for _, t := range rest {
		c := t.credential
		if c.ExpiresAt != nil && !c.ExpiresAt.After(s.now) {
			continue
		}
		valid++
		n := min(t.requests, int32(c.RateLimit))
		args = append(args, c.AccountID.UUID(), c.ID.UUID(), d.start, n, n, c.RateLimit)
	}
	if valid == 0 {
		return nil
	}
	rows, _ := conn.Query(ctx, citusCount+store.ValuesOnCitus(valid, citusCountRow)+addCounts, args...) // scanCounts returns the error
	return scanCounts(rows, rest, &d)
}

const (
	citusCount    = `INSERT INTO api_rate_limit_buckets AS b (account_id, credential_id, window_start, used, granted, rate_limit) VALUES `
	citusCountRow = `$::uuid, $::uuid, $::timestamptz, $::integer, $::integer, $::integer`
)

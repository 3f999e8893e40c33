package idempotency

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A Request is a row of requested, for ClaimOnCitus.
type Request struct {
	Scope
	Key      string
	Hash     Hash
	RunID    store.ID
	Response []byte
}

// ClaimOnCitus claims keys as Claimed does, in a separate statement. It returns the ids of the runs whose keys were
// free.
func ClaimOnCitus(ctx context.Context, tx pgx.Tx, requests []Request) ([]store.ID, error) {
	// The order of keys, as in Claimed.
	requests = slices.SortedFunc(slices.Values(requests), func(a, b Request) int {
		return cmp.Or(a.AccountID.Compare(b.AccountID), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Key, b.Key))
	})
	args := []any{pgx.QueryExecModeExec}
	for _, q := range requests {
		args = append(args, q.AccountID.UUID(), q.Method, q.Route, q.Key, q.Hash[:], q.RunID.UUID(), q.Response)
	}
	return store.Collect(ctx, tx, pgx.RowTo[store.ID], claim+store.ValuesOnCitus(len(requests), claimRow)+claimEnd, args...)
}

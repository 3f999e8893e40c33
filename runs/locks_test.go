package runs_test

import (
	"fmt"
	"slices"
	"testing"

	"aiv/auth"
	"aiv/runs"
	"aiv/store/storetest"
)

// TestMonthsAreLockedInOrder: a transaction that waits for the first of its accounts' months has locked none of the
// others, so that the batches of two processes do not wait for each other.
func TestMonthsAreLockedInOrder(t *testing.T) {
	storetest.SkipOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s, r := newProcess(t)
	const n = 10
	var customers []*auth.Credential // in descending order: the account of the last is locked first
	for range n {
		customers = append(customers, s.customer(t))
	}
	slices.SortFunc(customers, func(a, b *auth.Credential) int { return b.AccountID.Compare(a.AccountID) })
	write := func(key string, jobs int64, metered bool) error {
		var requests []*runs.CreateRequest
		for _, c := range customers {
			requests = append(requests, requestOf(c, key, 1, 1, jobs))
		}
		return r.WriteTogether(t.Context(), requests, metered)
	}
	must(t, write("first", 1, true))
	for name, jobs := range map[string]int64{"small runs": 1, "large runs": 600, "metered runs": 1} {
		first := begin(t, s.pool, `SELECT FROM account_months ORDER BY account_id LIMIT 1 FOR UPDATE`)
		must(t, s.whileWaiting(t, first, func() error { return write(name, jobs, name == "metered runs") }, func() {
			free := s.count(t, `WITH free AS (SELECT FROM account_months FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`)
			equal(t, n-1, free, name, ": months that are not locked")
		}))
	}
	s.wantRuns(t, 4*n)
}

// TestKeysAreClaimedInOrder: a batch that waits for the first of its keys has claimed none of the others, so that
// batches with the same keys in two processes do not wait for each other.
func TestKeysAreClaimedInOrder(t *testing.T) {
	storetest.SkipOnCitus(t, "a cluster claims the keys of several servers in any order")
	s := newSite(t)
	r := s.process(t, "")
	var requests []*runs.CreateRequest
	for i := range 20 {
		requests = append(requests, s.request(fmt.Sprintf("%02d", 19-i), 1, 1, 1))
	}
	write := func() error { return r.WriteTogether(t.Context(), requests, false) }
	must(t, s.whileWaiting(t, s.claim(t, "00"), write, func() {
		for _, q := range requests[:19] {
			must(t, s.claim(t, q.Key).Rollback(t.Context())) // would wait for the batch
		}
	}))
	s.wantRuns(t, 20)
}

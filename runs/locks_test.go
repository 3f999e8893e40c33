package runs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/runs"
	"aiv/store"
)

// TestMonthsAreLockedInOrder: a transaction that waits for the first of its accounts' months has locked none of the
// others, so that the batches of two processes do not wait for each other. It begins with accounts that have no run in
// this month yet.
func TestMonthsAreLockedInOrder(t *testing.T) {
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := newSite(t)
	r := s.process(t, "")
	const n = 10
	var customers []*auth.Credential // in descending order: the account of the last is locked first
	for range n {
		customers = append(customers, s.customer(t))
	}
	slices.SortFunc(customers, func(a, b *auth.Credential) int { return b.AccountID.Compare(a.AccountID) })
	write := func(key string, jobs int64, metered bool) func() error {
		var requests []*runs.CreateRequest
		for _, c := range customers {
			requests = append(requests, requestOf(c, key, 1, 1, jobs))
		}
		return func() error { return r.WriteTogether(t.Context(), requests, metered) }
	}
	insertMonths := func(customers []*auth.Credential) pgx.Tx {
		var accounts []store.ID
		for _, c := range customers {
			accounts = append(accounts, c.AccountID)
		}
		slices.SortFunc(accounts, store.ID.Compare)
		return begin(t, s.pool, `INSERT INTO account_months (account_id, month, runs, jobs_ordered)
			SELECT unnest($1::uuid[]), date_trunc('month', now(), 'UTC'), 0, 0`, accounts)
	}
	must(t, s.whileWaiting(t, insertMonths(customers[n-1:]), write("first", 1, true), func() {
		must(t, insertMonths(customers[:n-1]).Rollback(t.Context())) // would wait for the batch
	}))
	for _, test := range []struct {
		name  string
		write func() error
	}{
		{"small runs", write("small", 1, false)},
		{"large runs", write("large", 600, false)},
		{"metered runs", write("metered", 1, true)},
		{"finished runs", func() error {
			return pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				var finished []runs.Run
				for _, c := range customers {
					all, err := runs.List(t.Context(), tx, c.AccountID, runs.Filter{}, store.Page{Limit: 1})
					if err != nil {
						return err
					}
					finished = append(finished, all[0])
				}
				return runs.AddFinished(t.Context(), tx, finished)
			})
		}},
	} {
		first := begin(t, s.pool, `SELECT FROM account_months ORDER BY account_id LIMIT 1 FOR UPDATE`)
		must(t, s.whileWaiting(t, first, test.write, func() {
			free := s.count(t, `WITH free AS (SELECT FROM account_months FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`)
			equal(t, n-1, free, test.name, ": months that are not locked")
		}))
	}
	s.wantRuns(t, 4*n)
}

// TestLargeRunWaitsForMonth: a large run whose jobs are copied waits for the month of its account, instead of copying
// them again.
func TestLargeRunWaitsForMonth(t *testing.T) {
	s := newSite(t)
	r := s.process(t, "")
	create(t, r, s.request("first", 1, 1, 1))
	month := begin(t, s.pool, `UPDATE account_months SET runs = runs`)
	large := func() error { return ignore(r.Create(t.Context(), s.request("large", 1, 1, 5001))) }
	must(t, s.whileWaiting(t, month, large, func() {}))
	equal(t, uint64(0), r.Stats().Large.Failed, "runs whose jobs were copied twice")
}

// TestKeysAreClaimedInOrder: a batch that waits for the first of its keys has claimed none of the others, so that
// batches with the same keys in two processes do not wait for each other.
func TestKeysAreClaimedInOrder(t *testing.T) {
	notOnCitus(t, "a cluster claims the keys of several servers in any order")
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

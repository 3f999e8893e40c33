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
// others, so that the batches of two processes do not wait for each other.
func TestMonthsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := newSite(t)
	r := s.process(t, "&lock_timeout=30s", always)
	const n = 10
	var customers []*auth.Credential
	for range n {
		customers = append(customers, s.customer(t))
	}
	slices.SortFunc(customers, func(a, b *auth.Credential) int { return b.AccountID.Compare(a.AccountID) })
	requests := func(key string, jobs int64) (all []*runs.CreateRequest) {
		for _, c := range customers {
			all = append(all, s.requestOf(c, key, 1, 1, jobs))
		}
		return all
	}
	must(t, r.WriteTogether(t.Context(), requests("first", 1), false))
	for _, test := range []struct {
		name  string
		write func() error
	}{
		{"small runs", func() error { return r.WriteTogether(t.Context(), requests("small", 1), false) }},
		{"large runs", func() error { return r.WriteTogether(t.Context(), requests("large", 600), false) }},
		{"metered runs", func() error { return r.WriteTogether(t.Context(), requests("metered", 1), true) }},
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
		tx := begin(t, s.pool, `SELECT FROM account_months ORDER BY account_id LIMIT 1 FOR UPDATE`)
		done := make(chan error, 1)
		go func() { done <- test.write() }()
		s.waiting(t, "transactionid")
		equal(t, n-1, s.count(t, `WITH free AS (SELECT FROM account_months FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`),
			test.name, ": months that are not locked")
		must(t, tx.Rollback(t.Context()))
		must(t, <-done)
	}
	s.wantRuns(t, 4*n)
}

// TestNewMonthsAreLockedInOrder: so are the months of metered accounts that have no run in this month yet.
func TestNewMonthsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := newSite(t)
	r := s.process(t, "&lock_timeout=30s", always)
	var accounts []store.ID
	var requests []*runs.CreateRequest
	for range 10 {
		c := s.customer(t)
		accounts = append(accounts, c.AccountID)
		requests = append(requests, s.requestOf(c, "key", 1, 1, 1))
	}
	slices.SortFunc(requests, func(a, b *runs.CreateRequest) int {
		return b.Proposal.Orderer.AccountID.Compare(a.Proposal.Orderer.AccountID)
	})
	slices.SortFunc(accounts, store.ID.Compare)
	// begin inserts months in a transaction that does not end until it gives up.
	begin := func(accounts []store.ID) (giveUp func()) {
		t.Helper()
		tx := begin(t, s.pool, `INSERT INTO account_months (account_id, month, runs, jobs_ordered)
			SELECT unnest($1::uuid[]), date_trunc('month', now(), 'UTC'), 0, 0`, accounts)
		return func() { must(t, tx.Rollback(t.Context())) }
	}
	giveUp := begin(accounts[:1])
	done := make(chan error, 1)
	go func() { done <- r.WriteTogether(t.Context(), requests, true) }()
	s.waiting(t, "transactionid")
	begin(accounts[1:])() // would wait for the batch
	giveUp()
	must(t, <-done)
	s.wantRuns(t, 10)
}

// TestLargeRunWaitsForMonth: a large run whose jobs are copied waits for the month of its account, instead of copying
// them again.
func TestLargeRunWaitsForMonth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "&lock_timeout=30s", always)
	create(t, r, s.request("first", 1, 1, 1))
	tx := begin(t, s.pool, `UPDATE account_months SET runs = runs`)
	done := goCreate(t.Context(), r, s.request("large", 1, 1, 5001))
	s.waiting(t, "transactionid")
	must(t, tx.Rollback(t.Context()))
	must(t, ignore(done.wait()))
	equal(t, 0, r.Stats().Large.Failed, "runs whose jobs were copied twice")
}

// TestKeysAreClaimedInOrder: a batch that waits for the first of its keys has claimed none of the others, so that
// batches with the same keys in two processes do not wait for each other.
func TestKeysAreClaimedInOrder(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster claims the keys of several servers in any order")
	s := newSite(t)
	r := s.process(t, "&lock_timeout=30s", always)
	var keys []string
	var requests []*runs.CreateRequest
	for i := range 20 {
		keys = append(keys, fmt.Sprintf("%02d", 19-i))
		requests = append(requests, s.request(keys[i], 1, 1, 1))
	}
	giveUp := s.claim(t, "00")
	done := make(chan error, 1)
	go func() { done <- r.WriteTogether(t.Context(), requests, false) }()
	s.waiting(t, "transactionid")
	for _, key := range keys[:19] {
		s.claim(t, key)() // would wait for the batch
	}
	giveUp()
	must(t, <-done)
	s.wantRuns(t, 20)
}

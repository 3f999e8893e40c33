package jobs

import (
	"slices"
	"testing"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestClaimsAreFlat: claims, settlements and sweeps touch as many pages and rows of tables where 12 accounts have a few
// runs, where 100 accounts wait for 4 million jobs, where one has 1,000 runs, and where many runs have been worked and
// nothing was vacuumed. It is not parallel: while transactions of other tests are open, PostgreSQL keeps dead
// entries of indexes, in all databases.
func TestClaimsAreFlat(t *testing.T) {
	storetest.SkipOnCitus(t, "a claim reads the turns of all accounts, see store/SCALING.md")
	few := load{accounts: 12, runs: 12, questions: 1, repetitions: 1}.touches(t)
	one := load{accounts: 1, runs: 40, questions: 1, repetitions: 1}.touches(t)
	for what, test := range map[string]struct {
		less  storetest.Cost
		large load
	}{
		"many wait":                 {few, load{accounts: 100, runs: 10, questions: 100, repetitions: 20, done: 3}},
		"many are done":             {few, load{accounts: 12, runs: 12, questions: 1, repetitions: 1, done: 60}},
		"one account has many runs": {one, load{accounts: 1, runs: 1000, questions: 1, repetitions: 1}},
	} {
		more := test.large.touches(t)
		// Indexes have more levels, and dead entries are skipped.
		if more.Pages > 2*test.less.Pages || more.Rows > test.less.Rows+test.less.Rows/2 {
			t.Errorf("%s: %+v; where few wait, %+v", what, more, test.less)
		}
	}
}

// A load has the number of runs of each account that wait or are done.
type load struct{ accounts, runs, questions, repetitions, done int }

// touches returns what 5 claims and settlements of 10 jobs, and a sweep, cost.
func (l load) touches(t *testing.T) storetest.Cost {
	t.Helper()
	s := ownSite(t)
	pool := storetest.Open(t, s.url+"&synchronous_commit=on", store.OpenHot, 1) // of which every statement is counted
	s.d = s.dispatcher(Config{Pool: pool})
	var accounts []store.ID
	for range l.accounts {
		accounts = append(accounts, s.account())
	}
	create := func(runs, questions, repetitions int) {
		of := slices.Repeat(accounts, runs)
		ids := make([]store.ID, len(of))
		for i := range ids {
			ids[i] = store.NewID()
		}
		const from = "FROM unnest($1::uuid[], $2::uuid[]) AS k (account, run)"
		s.exec(insertRuns("account", "run", from), of, ids, []string{"m1", "m2"}, questions, repetitions)
		for s.rows("job_arrivals") > 0 {
			s.sweep()
		}
	}
	work := func(limit, times int) {
		for range times {
			got := s.claim(limit)
			equal(t, limit, len(got), "jobs")
			s.settle(Completed, got...)
		}
	}
	// The session keeps the plans that it makes while next to nothing waits.
	create(1, 1, 1)
	work(1, 1)
	storetest.VacuumEmpty(t, s.pool, "job_arrivals", "job_queue", "job_turns", "job_leases", "job_results", "provider_minutes",
		"measurement_runs")
	work(l.accounts*2-1, 1)
	create(l.done, 1, 1)
	work(120, l.accounts*2*l.done/120)
	create(l.runs, l.questions, l.repetitions)
	work(10, 1)
	before := touched(t, pool)
	work(10, 5)
	s.sweep()
	after := touched(t, pool)
	return storetest.Cost{Rows: after.Rows - before.Rows, Pages: after.Pages - before.Pages}
}

// touched returns what was read so far by the only connection of a pool.
func touched(t *testing.T, pool *pgxpool.Pool) (c storetest.Cost) {
	t.Helper()
	must(t, ignore(pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)))
	must(t, pool.QueryRow(t.Context(), `
SELECT (SELECT sum(heap_blks_read + heap_blks_hit + COALESCE(idx_blks_read + idx_blks_hit, 0))
    FROM pg_statio_user_tables)::bigint,
  (SELECT sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables)::bigint`).Scan(&c.Pages, &c.Rows))
	return c
}

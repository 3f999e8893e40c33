package jobs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// whileWaiting starts f, calls then when it waits for another transaction, and waits for its end.
func (s *site) whileWaiting(f, then func()) {
	s.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	storetest.UntilWaiting(s.t, s.pool, "transactionid")
	then()
	<-done
}

// lock locks runs from another session, until the function that it returns is called.
func (s *site) lock(which string, args ...any) (unlock func()) {
	s.t.Helper()
	tx := storetest.Begin(s.t, s.pool, `SELECT FROM measurement_runs `+which+` FOR UPDATE`, args...)
	return func() { must(s.t, tx.Rollback(s.t.Context())) }
}

// TestRunsAreLockedInOrder: a claim or a settlement that waits for the first of its runs has locked none of the others,
// so that transactions with the same runs cannot deadlock.
func TestRunsAreLockedInOrder(t *testing.T) {
	storetest.SkipOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := newSite(t)
	var finished []store.ID
	s.d = s.dispatcher(Config{LockWait: "1min", Finished: func(_ context.Context, _ store.Tx, f []runs.Run) error {
		for i := range f {
			finished = append(finished, f[i].ID)
		}
		return nil
	}})
	account := s.account()
	const n = 20
	for range n {
		s.orderOf(account, "m1", 1, 1)
	}
	whileFirstIsLocked := func(f func()) {
		t.Helper()
		unlock := s.lock(`ORDER BY account_id, id LIMIT 1`)
		s.whileWaiting(f, func() {
			const free = `WITH free AS (SELECT FROM measurement_runs FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`
			equal(t, n-1, s.count(free), "runs that no transaction has locked")
			unlock()
		})
	}
	var held []Job
	whileFirstIsLocked(func() { held = s.claim(n) })
	equal(t, n, len(held), "jobs")
	slices.Reverse(held)
	whileFirstIsLocked(func() { s.settle(Completed, held...) })
	s.settle(Completed, held...) // repeated: the runs finish once
	if len(finished) != n || !slices.IsSortedFunc(finished, store.ID.Compare) {
		t.Errorf("the runs finished as %v, want each of %d once, in order", finished, n)
	}
}

// TestLeaseEndsWhileRunIsLocked: a settlement whose lease ends while it waits for the run is stale.
func TestLeaseEndsWhileRunIsLocked(t *testing.T) {
	storetest.SkipOnCitus(t, "about locks of one server")
	s := newSite(t)
	s.order(1)
	held := s.claim(1)
	unlock := s.lock("")
	s.whileWaiting(func() { equal(t, "stale", s.settle(Completed, held...)) }, func() {
		s.exec(`UPDATE job_leases SET until = clock_timestamp()`)
		unlock()
	})
}

// TestSettleWhileAnotherRunIsLocked: a settlement does not wait for the run of an earlier one that another session has
// locked.
func TestSettleWhileAnotherRunIsLocked(t *testing.T) {
	storetest.SkipOnCitus(t, "a cluster does not pass on the time that a transaction waits for locks")
	s := newSite(t)
	s.d = s.dispatcher(Config{})
	s.order(1)
	s.order(1)
	held := s.claim(2)
	unlock := s.lock(`WHERE id = $1`, held[0].Key.Run)
	s.whileWaiting(func() { equal(t, "settled", s.settle(Completed, held[0]), "the job of the locked run") }, func() {
		equal(t, "settled", s.settle(Completed, held[1]), "the job of another run")
		unlock()
	})
}

// TestSweepWhileRunsAreLocked: the leases of runs that another session has locked do not delay the end of other leases.
func TestSweepWhileRunsAreLocked(t *testing.T) {
	storetest.SkipOnCitus(t, "about locks of one server")
	s := newSite(t)
	locked := s.order(20)
	s.order(1)
	for range 21 {
		s.claim(1) // 20 leases are as many as a step ends
	}
	s.pass(time.Hour)
	sweep := func(d *Dispatcher, want int, what string) {
		t.Helper()
		n, err := d.Sweep(t.Context())
		must(t, err)
		equal(t, want, n, "leases: ", what)
	}
	unlock := s.lock(`WHERE id = $1`, locked)
	sweep(s.dispatcher(Config{}), 1, "the one of the other run")
	s.whileWaiting(func() { sweep(s.d, 19, "those of the locked run but the renewed one") }, func() {
		s.exec(`UPDATE job_leases SET until = now() + interval '1 h' WHERE run_id = $1 AND ordinal = 1`, locked)
		unlock()
	})
}

// TestTriesAreBounded: a transaction that always fails because of others ends with an error, after which clients try
// again later. One whose client has left is not tried again.
func TestTriesAreBounded(t *testing.T) {
	s := newSite(t)
	deadlock := &pgconn.PgError{Code: "40P01"}
	for _, leaves := range []bool{false, true} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		calls := 0
		err := inTransaction(ctx, s.pool, func(*pgxpool.Conn) error {
			if calls++; leaves {
				leave()
			}
			return deadlock
		})
		want, tries := store.ErrContended, maxTransactionTries
		if leaves {
			want, tries = context.Canceled, 1
		}
		if calls != tries || !errors.Is(err, want) {
			t.Errorf("the client leaves: %t: %d calls, %v; want %d calls, %v", leaves, calls, err, tries, want)
		}
	}
}

// TestChangedRowsAreNotLost: another transaction changes a row between its read by a claim or a settlement and the
// statement that changes it, without the lock that the package takes for such changes. The transaction is repeated, and
// no change is lost.
func TestChangedRowsAreNotLost(t *testing.T) {
	s := newSite(t)
	s.order(10)
	held := s.claim(2)
	const turns, leases = `UPDATE job_turns SET turn = turn`, `UPDATE job_leases SET tries = tries WHERE ordinal = $1`
	whileChanging := func(f func(), change string, args ...any) {
		t.Helper()
		tx := storetest.Begin(t, s.pool, change, args...)
		s.whileWaiting(f, func() { must(t, tx.Commit(t.Context())) })
	}
	claim := func(n int) func() { return func() { held = append(held, s.claim(n)...) } }
	turn := func() int { return s.count(`SELECT turn FROM job_turns`) }
	before := turn()
	whileChanging(claim(1), turns)
	if len(held) != 3 || turn() <= before {
		t.Errorf("%d jobs and turn %d, want 3 and a turn after %d", len(held), turn(), before)
	}
	whileChanging(func() { s.settle(Completed, held[:2]...) }, leases, 1)
	equal(t, 0, s.count(`SELECT count(*) FROM job_leases WHERE ordinal <= 2`), "leases of settled jobs are left")
	whileChanging(claim(7), turns)
	equal(t, 10, len(held), "jobs")
	equal(t, 0, s.rows("job_turns"), "turns")
	s.settle(Released, held[2])
	s.sweep() // makes the lease ready
	whileChanging(claim(1), leases, 3)
	equal(t, "settled settled settled settled settled settled settled settled", s.settle(Completed, held[3:]...))
}

package jobs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
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
	tx := s.begin(`SELECT FROM measurement_runs `+which+` FOR UPDATE`, args...)
	return func() { must(s.t, tx.Rollback(s.t.Context())) }
}

// free returns how many rows of a table no transaction has locked.
func (s *site) free(table string) int {
	s.t.Helper()
	return s.count(`WITH free AS (SELECT FROM ` + table + ` FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`)
}

// TestRunsAreLockedInOrder: a claim or a settlement that waits for the first of its runs has locked none of the others,
// so that transactions with the same runs cannot deadlock.
func TestRunsAreLockedInOrder(t *testing.T) {
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
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
			equal(t, n-1, s.free("measurement_runs"), "runs that no transaction has locked")
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

// TestClaimWhileRunIsLocked: a claim of jobs that no worker has had does not wait for the row of a run that has
// started. One of returned jobs does, because the run counts these.
func TestClaimWhileRunIsLocked(t *testing.T) {
	notOnCitus(t, "about locks of one server")
	s := newSite(t)
	run := s.order(4)
	first := s.claim(2)
	unlock := s.lock(`WHERE id = $1`, run)
	equal(t, 2, len(s.claim(2)), "fresh jobs")
	unlock()
	s.settle(Released, first...)

	unlock = s.lock(`WHERE id = $1`, run)
	var returned []Job
	s.whileWaiting(func() { returned = s.claim(2) }, func() {
		equal(t, "running: 2 of 4 jobs running, 0 completed, 0 failed, 0 canceled", s.state(run))
		unlock()
	})
	equal(t, 2, len(returned), "returned jobs")
}

// TestQueueIsLockedInOrder: a claim or a cancellation that waits for the first of a run's rows of job_queue has locked
// none of the others, and a cancellation that waits for the run none at all, so that the two cannot deadlock.
func TestQueueIsLockedInOrder(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := ownSite(t)
	storetest.VacuumEmpty(t, s.pool, "job_queue") // by these statistics, any index is as good as another
	account := s.account()
	const theRun, firstRow = `SELECT FROM measurement_runs WHERE id = $1`,
		`SELECT FROM job_queue WHERE run_id = $1 AND model_no = 1`
	for _, test := range []struct {
		name, lock string
		claimed    int // jobs; the last of the run before are claimed first
		free       int // rows that are not locked
		do         func(run store.ID)
	}{
		{"a claim of a whole row and a part of the other", firstRow, 1, 1,
			func(store.ID) { s.settle(Completed, s.claim(5)...) }},
		{"a cancellation", firstRow, 3, 1, s.cancel},
		{"a cancellation that waits for its run", theRun, 1, 2, s.cancel},
	} {
		run := s.orderOf(account, "m2 m1", 4, 1) // the first model's provider is the second
		s.claim(test.claimed)
		tx := s.begin(test.lock+` FOR UPDATE`, run)
		s.whileWaiting(func() { test.do(run) }, func() {
			equal(t, test.free, s.free("job_queue"), "rows that are not locked beside ", test.name)
			must(t, tx.Rollback(t.Context()))
		})
	}
	s.check()
}

// TestLeaseEndsWhileRunIsLocked: a settlement whose lease ends while it waits for the run is stale.
func TestLeaseEndsWhileRunIsLocked(t *testing.T) {
	notOnCitus(t, "about locks of one server")
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
	notOnCitus(t, "a cluster does not pass on the time that a transaction waits for locks")
	s := newSite(t)
	s.d = s.dispatcher(Config{})
	locked, other := s.order(1), s.order(1)
	held := s.claim(2)
	if held[0].Key.Run != locked {
		slices.Reverse(held)
	}
	unlock := s.lock(`WHERE id = $1`, locked)
	var waiting sync.WaitGroup
	settleLocked := func() { equal(t, "settled", s.settle(Completed, held[0]), "the job of the locked run") }
	waiting.Go(settleLocked)
	storetest.UntilWaiting(t, s.pool, "transactionid")
	for range 10 { // in one batch with the job of another run
		waiting.Go(settleLocked)
	}
	storetest.Eventually(t, "10 settlements wait", func() bool { return s.d.reports.Stats().Waiting >= 10 })
	equal(t, "settled", s.settle(Completed, held[1]), "the job of another run")
	unlock()
	waiting.Wait()
	for _, run := range []store.ID{locked, other} {
		equal(t, "completed: 0 of 1 jobs running, 1 completed, 0 failed, 0 canceled", s.state(run))
	}
}

// TestSweepWhileRunsAreLocked: the leases of runs that another session has locked do not delay the end of other leases.
// A sweep waits for one of the locked runs only, because it would end leases that expire in the meantime too late.
func TestSweepWhileRunsAreLocked(t *testing.T) {
	notOnCitus(t, "about locks of one server")
	s := newSite(t)
	account := s.account()
	locked := []store.ID{s.orderOf(account, "m1", 20, 1), s.orderOf(account, "m1", 1, 1)}
	s.orderOf(account, "m1", 1, 1)
	for range 22 {
		s.claim(1) // 20 leases of the first run are as many as a step ends
	}
	s.pass(time.Hour)
	unlock := s.lock(`WHERE id = ANY ($1)`, locked)
	sweep := func(d *Dispatcher, want int, what string) {
		t.Helper()
		n, err := d.Sweep(t.Context())
		must(t, err)
		equal(t, want, n, "leases: ", what)
	}
	waits := &counter{}
	sweep(s.dispatcher(Config{Pool: storetest.WithTracer(t, s.pool, waits)}), 1, "the one of the other run")
	equal(t, int32(1), waits.timeouts.Load(), "locked runs for which the sweep waited")
	s.whileWaiting(func() { sweep(s.d, 20, "those of the locked runs but the renewed one") }, func() {
		s.exec(`UPDATE job_leases SET until = now() + interval '1 h' WHERE run_id = $1 AND ordinal = 1`, locked[0])
		unlock()
	})
}

// TestOverdueRunsAreShuffled: the many overdue leases of one run do not always precede that of another run.
func TestOverdueRunsAreShuffled(t *testing.T) {
	t.Parallel()
	s := ownSite(t)
	locked, other := store.ID{1}, store.ID{2}
	for run, leases := range map[store.ID]int{locked: 300, other: 1} {
		s.exec(insertLeases, s.account(), run, 1, leases, "held", "1 h")
	}
	for _, run := range []store.ID{other, locked} {
		storetest.Eventually(t, "the run is first", func() bool {
			var first store.ID
			row := s.pool.QueryRow(t.Context(), overdueLeases, s.d.cfg.Outage.Reachable(citusOverdue))
			must(t, row.Scan(nil, &first, nil, nil, nil))
			return first == run
		})
	}
}

// insertLeases inserts leases of the jobs $3 to $4 of run $2 of account $1 in the state $5 that ended $6 ago.
const insertLeases = `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries,
  until, started_at, worker_id)
SELECT $1::uuid, $2::uuid, o, o, 'p1', now(), $5, 1, 0, now() - $6::interval, now(), $1
FROM generate_series($3::integer, $4::integer) o`

// TestPurgeWhileClaimed: a run is canceled and purged while a claim takes jobs from it. Neither ends in a deadlock.
func TestPurgeWhileClaimed(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about rows and locks of one server")
	s := ownSite(t)
	// The session that closes a circle is then the one that PostgreSQL ends.
	s.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''20ms''', current_database()); END $$`)
	s.d = s.dispatcher(Config{Pool: s.open(t, "")})
	account := s.account()
	all := []store.ID{s.orderOf(account, "m1", 1, 1), s.orderOf(account, "m1", 1, 1)}
	slices.SortFunc(all, store.ID.Compare)
	first, canceled := all[0], all[1]

	unlock := s.lock(`WHERE account_id = $1 AND id = $2`, account, first)
	claimed := s.goClaim(t.Context(), ClaimRequest{Limit: 2})
	claiming := storetest.UntilWaiting(t, s.pool, "transactionid")
	s.cancel(canceled)
	purged := s.goPurge(s.open(t, ""))
	s.untilBlockedBy("the purge", claiming)
	unlock()
	if got := s.jobsOf(claimed); len(got) != 1 || got[0].Key.Run != first {
		t.Errorf("claimed %+v, want the job of the run that was not canceled", got)
	}
	must(t, <-purged)
	equal(t, 1, s.rows("measurement_runs"), "runs are left")
	s.check()
}

// untilBlockedBy waits until another session waits for a lock of the one with a process id.
func (s *site) untilBlockedBy(who string, pid int) {
	s.t.Helper()
	storetest.Eventually(s.t, who+" waits for the other session", func() bool {
		return s.count(`
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND $1 = ANY (pg_blocking_pids(pid))`, pid) > 0
	})
}

// goPurge purges all final runs, in the background.
func (s *site) goPurge(pool *pgxpool.Pool) <-chan error {
	purged := make(chan error, 1)
	go func() { purged <- ignore(purger(pool).FinishedBefore(s.t.Context(), time.Now().Add(time.Minute), 0)) }()
	return purged
}

func purger(pool *pgxpool.Pool) *runs.Purger {
	return &runs.Purger{Pool: pool, Actor: "test", Tables: Capability.Tables}
}

// TestClaimsDuringPurge: claims do not wait for the transaction that deletes a canceled run.
func TestClaimsDuringPurge(t *testing.T) {
	notOnCitus(t, "about locks of one server")
	s := newSite(t)
	run, account := s.order(2), s.account()
	s.claim(1)
	s.cancel(run)

	stop := newStopper(t, s.pool, "DELETE FROM measurement_runs")
	purged := s.goPurge(stop.pool)
	<-stop.stopped // when it has deleted the run, and not committed
	other := s.orderOf(account, "m1", 1, 1)
	if got := s.claim(1); len(got) != 1 || got[0].Key.Run != other {
		t.Errorf("claimed %+v, want the job of the other account", got)
	}
	stop.release()
	must(t, <-purged)
	equal(t, 1, s.rows("measurement_runs"), "runs are left")
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
		tx := s.begin(change, args...)
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

// TestTriesAreBounded: a transaction that always fails because of others, for instance because an arrival that it
// deletes is gone, ends with an error, after which clients try again later. One whose client has left is not tried
// again.
func TestTriesAreBounded(t *testing.T) {
	s := newSite(t)
	var b pgx.Batch
	deleteArrivals(&b, []store.ID{s.account()}, []store.ID{store.NewID()}, false)
	gone := s.pool.SendBatch(t.Context(), &b).Close()
	deadlock := &pgconn.PgError{Code: "40P01"}
	for _, test := range []struct {
		fault         error
		leaves        bool
		calls         int
		want, wrapped error
	}{
		{gone, false, maxTransactionTries, errChanged, store.ErrContended},
		{deadlock, false, maxTransactionTries, deadlock, store.ErrContended},
		{gone, true, 1, context.Canceled, context.Canceled},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		err := inTransaction(ctx, s.pool, func(*pgxpool.Conn) error {
			if calls++; calls > 2*maxTransactionTries {
				return errors.New("endless")
			}
			if test.leaves {
				cancel()
			}
			return test.fault
		})
		cancel()
		if calls != test.calls || !errors.Is(err, test.want) || !errors.Is(err, test.wrapped) {
			t.Errorf("%v: %d calls, %v; want %d calls, %v and %v", test.fault, calls, err, test.calls, test.want, test.wrapped)
		}
	}
}

package jobs_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestRunsAreLockedInOrder: a claim or a settlement that waits for the first of its runs has locked none of the others,
// so that transactions with the same runs cannot deadlock.
func TestRunsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := newSite(t)
	var finished []store.ID
	note := func(_ context.Context, _ store.Tx, f []runs.Run) error {
		for i := range f {
			finished = append(finished, f[i].ID)
		}
		return nil
	}
	d := jobs.New(jobs.Config{Pool: s.pool, Timeout: time.Minute, MaxWaiting: 10, LockWait: "1min", Finished: note})
	account := s.account(t)
	const n = 20
	for range n {
		s.createRun(t, account, []string{"m1"}, 1, 1)
	}
	whileFirstIsLocked := func(f func()) {
		t.Helper()
		unlock := s.lockRun(t, `ORDER BY account_id, id LIMIT 1`)
		s.whileWaiting(t, f, func() {
			equal(t, n-1, s.count(t, `WITH free AS (SELECT FROM measurement_runs FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`),
				"runs that no transaction has locked")
			unlock()
		})
	}
	var claimed []jobs.Job
	whileFirstIsLocked(func() { claimed = claim(t, d, n) })
	equal(t, n, len(claimed), "jobs")
	slices.Reverse(claimed)
	whileFirstIsLocked(func() { settle(t, d, jobs.Completed, claimed...) })
	settle(t, d, jobs.Completed, claimed...) // repeated: the runs finish once
	if len(finished) != n || !slices.IsSortedFunc(finished, store.ID.Compare) {
		t.Errorf("the runs finished as %v, want each of %d once, in order", finished, n)
	}
}

// TestClaimWhileRunIsLocked: a claim of jobs that no worker has had does not wait for the row of a run that has
// started. One of returned jobs does, because the run counts these.
func TestClaimWhileRunIsLocked(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	s, d := start(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 4, 1)
	first := claim(t, d, 2)
	unlock := s.lockRun(t, `WHERE id = $1`, run)
	equal(t, 2, len(claim(t, d, 2)), "jobs")
	unlock()
	equal(t, 4, s.run(t, run).Running)
	settle(t, d, jobs.Released, first...)
	s.check(t)

	unlock = s.lockRun(t, `WHERE id = $1`, run)
	claimed := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 2, Lease: time.Minute})
	storetest.UntilWaiting(t, s.pool, "transactionid")
	equal(t, 2, s.run(t, run).Running)
	unlock()
	if a := <-claimed; a.err != nil || len(a.jobs) != 2 {
		t.Errorf("%d jobs, %v; want the 2 that were returned", len(a.jobs), a.err)
	}
}

// TestQueueIsLockedInOrder: a claim or a cancellation that waits for the first of a run's rows of job_queue has locked
// none of the others, and a cancellation that waits for the run none at all, so that the two cannot deadlock.
func TestQueueIsLockedInOrder(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster locks rows in any order, and ends deadlocks")
	s := newSiteAt(t, storetest.URL(t))
	storetest.VacuumEmpty(t, s.pool, "job_queue") // by these statistics, any index is as good as another
	d := s.dispatcher(t)
	account := s.account(t)
	run := s.createRun(t, account, []string{"m2", "m1"}, 4, 1) // the first model's provider is the second
	claim(t, d, 1)
	whileLocked := func(who, lock string, free int, f func()) {
		t.Helper()
		tx := begin(t, s.pool, lock+` FOR UPDATE`, account, run)
		s.whileWaiting(t, f, func() {
			equal(t, free, s.count(t, `WITH free AS (SELECT FROM job_queue FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`),
				"rows that are not locked beside ", who)
			must(t, tx.Rollback(t.Context()))
		})
	}
	const theRun, firstRow = `SELECT FROM measurement_runs WHERE account_id = $1 AND id = $2`,
		`SELECT FROM job_queue WHERE account_id = $1 AND run_id = $2 AND model_no = 1`
	whileLocked("a claim of a whole row and a part of the other", firstRow, 1, func() {
		settle(t, d, jobs.Completed, claim(t, d, 5)...)
	})
	run = s.createRun(t, account, []string{"m2", "m1"}, 4, 1)
	claim(t, d, 3) // the last of the first run, and one of this
	whileLocked("a cancellation", firstRow, 1, func() { s.cancel(t, run) })
	run = s.createRun(t, account, []string{"m2", "m1"}, 4, 1)
	claim(t, d, 1)
	whileLocked("a cancellation that waits for its run", theRun, 2, func() { s.cancel(t, run) })
	s.check(t)
}

// TestLeaseEndsWhileRunIsLocked: a settlement whose lease ends while it waits for the run is stale.
func TestLeaseEndsWhileRunIsLocked(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	s, d := start(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	held := claim(t, d, 1)
	unlock := s.lockRun(t, `WHERE id = $1`, run)
	var states []string
	s.whileWaiting(t, func() { states = settle(t, d, jobs.Completed, held...) }, func() {
		s.exec(t, `UPDATE job_leases SET until = clock_timestamp()`)
		unlock()
	})
	equal(t, []string{jobs.Stale}, states)
}

// whileWaiting starts f, calls then when it waits for another transaction, and waits for its end.
func (s *site) whileWaiting(t *testing.T, f, then func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	storetest.UntilWaiting(t, s.pool, "transactionid")
	then()
	<-done
}

// lockRun locks a run from another session, until the function that it returns is called.
func (s *site) lockRun(t *testing.T, which string, args ...any) (unlock func()) {
	t.Helper()
	tx := begin(t, s.pool, `SELECT FROM measurement_runs `+which+` FOR UPDATE`, args...)
	return func() { must(t, tx.Rollback(t.Context())) }
}

// TestSettleWhileAnotherRunIsLocked: a settlement does not wait for the run of an earlier one that another session has
// locked.
func TestSettleWhileAnotherRunIsLocked(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster does not pass on the time that a transaction waits for locks")
	s := newSite(t)
	d := jobs.New(jobs.Config{Pool: s.pool, Timeout: time.Minute, MaxWaiting: 1000})
	locked, other := s.createRun(t, s.account(t), []string{"m1"}, 1, 1), s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	held := claim(t, d, 2)
	if held[0].Key.Run != locked {
		slices.Reverse(held)
	}
	unlock := s.lockRun(t, `WHERE id = $1`, locked)
	var waiting sync.WaitGroup
	settleLocked := func() {
		if _, err := d.Settle(t.Context(), jobs.Reporter{}, []jobs.Settlement{settlement(held[0], jobs.Completed)}); err != nil {
			t.Error("the job of the locked run:", err)
		}
	}
	waiting.Go(settleLocked)
	storetest.UntilWaiting(t, s.pool, "transactionid")
	for range 10 { // in one batch with the job of another run
		waiting.Go(settleLocked)
	}
	storetest.Eventually(t, "10 settlements wait", func() bool { return d.ReportsWaiting() >= 10 })
	equal(t, []string{jobs.Settled}, settle(t, d, jobs.Completed, held[1]), "the job of another run")
	unlock()
	waiting.Wait()
	for _, run := range []store.ID{locked, other} {
		equal(t, "completed", s.run(t, run).Status)
	}
}

// TestSweepWhileRunIsLocked: the leases of a run that another session has locked do not delay the end of other leases.
func TestSweepWhileRunIsLocked(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	s := newSite(t)
	d, patient := jobs.New(jobs.Config{Pool: s.pool, Timeout: time.Minute, MaxWaiting: 10}), s.dispatcher(t)
	account := s.account(t)
	first := s.createRun(t, account, []string{"m1"}, 20, 1)
	for range 20 {
		claim(t, d, 1) // as many leases as a step ends
	}
	s.createRun(t, account, []string{"m1"}, 1, 1)
	claim(t, d, 1)
	s.pass(t, time.Hour)
	unlock := s.lockRun(t, `WHERE id = $1`, first)
	if n, err := d.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("%d leases, %v; want the one of the other run", n, err)
	}
	// A sweep waits for a run that was locked each time.
	var swept int
	var err error
	s.whileWaiting(t, func() { swept, err = patient.Sweep(t.Context()) }, func() {
		s.exec(t, `UPDATE job_leases SET until = now() + interval '1 h' WHERE ordinal = 1`) // as a renewal that was faster
		unlock()
	})
	if err != nil || swept != 19 {
		t.Errorf("%d leases, %v; want those of the run but the renewed one", swept, err)
	}
}

// TestSweepWhileManyRunsAreLocked: a sweep does not wait for each of many locked runs, because it would end leases that
// expire in the meantime too late.
func TestSweepWhileManyRunsAreLocked(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "a cluster waits longer for a lock")
	const locked = 20
	s, d := start(t)
	account := s.account(t)
	for range locked {
		s.createRun(t, account, []string{"m1"}, 1, 1)
		claim(t, d, 1)
	}
	s.pass(t, time.Hour)
	unlock := s.lockRun(t, `WHERE account_id = $1`, account)
	waits := &counter{}
	d = jobs.New(jobs.Config{Pool: storetest.WithTracer(t, s.pool, waits), Timeout: time.Minute, MaxWaiting: 10})
	if n, err := d.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("%d leases of locked runs, %v", n, err)
	}
	equal(t, 1, waits.timeouts.Load(), "locked runs for which the sweep waited")
	unlock()
	if n, err := d.Sweep(t.Context()); err != nil || n != locked {
		t.Errorf("%d leases, %v; want %d", n, err, locked)
	}
}

// TestOverdueRunsAreShuffled: the many overdue leases of one run do not always precede that of another run.
func TestOverdueRunsAreShuffled(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	d := s.dispatcher(t)
	account, locked, other := s.account(t), store.ID{1}, store.ID{2}
	s.exec(t, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
  SELECT $1::uuid, run, o, o, 'p1', now(), 'held', 1, 0, now() - interval '1 h', now(), $1
  FROM unnest($2::uuid[], $3::integer[]) k (run, n), generate_series(1, n) o`, account, []store.ID{locked, other}, []int{300, 1})
	first := func(run store.ID) func() bool {
		return func() bool {
			got, err := d.FirstOverdue(t.Context())
			must(t, err)
			return got == run
		}
	}
	storetest.Eventually(t, "the run with one lease is first", first(other))
	storetest.Eventually(t, "the run with many leases is first", first(locked))
}

// TestPurgeWhileClaimed: a run is canceled and purged while a claim takes jobs from it. Neither ends in a deadlock.
func TestPurgeWhileClaimed(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about rows and locks of one server")
	s := newSiteAt(t, storetest.URL(t))
	// The session that closes a circle is then the one that PostgreSQL ends.
	s.exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''20ms''', current_database()); END $$`)
	d := jobs.New(jobs.Config{Pool: s.open(t), Timeout: 20 * time.Second, MaxWaiting: 10})
	account := s.account(t)
	all := []store.ID{s.createRun(t, account, []string{"m1"}, 1, 1), s.createRun(t, account, []string{"m1"}, 1, 1)}
	slices.SortFunc(all, store.ID.Compare)
	first, canceled := all[0], all[1]

	unlock := s.lockRun(t, `WHERE account_id = $1 AND id = $2`, account, first)
	claimed := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 2, Lease: time.Minute})
	claiming := storetest.UntilWaiting(t, s.pool, "transactionid")
	s.cancel(t, canceled)
	purged := s.goPurge(t)
	s.untilBlockedBy(t, "the purge", claiming)
	unlock()
	if a := <-claimed; a.err != nil || len(a.jobs) != 1 || a.jobs[0].Key.Run != first {
		t.Errorf("claimed %+v, %v, want the job of the run that was not canceled", a.jobs, a.err)
	}
	must(t, <-purged)
	equal(t, 1, s.count(t, `SELECT count(*) FROM measurement_runs`), "runs are left")
	s.check(t)
}

// untilBlockedBy waits until another session waits for a lock of the one with a process id.
func (s *site) untilBlockedBy(t *testing.T, who string, pid int) {
	t.Helper()
	storetest.Eventually(t, who+" waits for the other session", func() bool {
		return s.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND $1 = ANY (pg_blocking_pids(pid))`, pid) > 0
	})
}

// goPurge purges all final runs, in the background.
func (s *site) goPurge(t *testing.T) <-chan error {
	p := purger(s.open(t))
	purged := make(chan error, 1)
	go func() {
		_, err := p.FinishedBefore(t.Context(), time.Now().Add(time.Minute), 0)
		purged <- err
	}()
	return purged
}

func purger(pool *pgxpool.Pool) *runs.Purger {
	return &runs.Purger{Pool: pool, Actor: "test", Tables: jobs.Capability.Tables}
}

// TestClaimsDuringPurge: claims do not wait for the transaction that deletes a canceled run.
func TestClaimsDuringPurge(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about locks of one server")
	s, d := start(t)
	canceled, account := s.account(t), s.account(t)
	run := s.createRun(t, canceled, []string{"m1"}, 1, 2)
	claim(t, d, 1)
	s.cancel(t, run)

	unlock := s.lockRun(t, `WHERE id = $1`, run)
	purged := s.goPurge(t)
	claimed := 0
	// The purge gives way after 2 s. On a slow machine only a later claim may be faster.
	for waiting, during := 0, false; !during; {
		waiting = storetest.UntilWaiting(t, s.pool, "transactionid")
		const transaction = `
SELECT COALESCE(max(extract(epoch FROM xact_start) * 1000000)::bigint, 0) FROM pg_stat_activity WHERE pid = $1`
		began := s.count(t, transaction, waiting)
		other := s.createRun(t, account, []string{"m1"}, 1, 1)
		got := claim(t, d, 1)
		if len(got) != 1 || got[0].Key.Run != other {
			t.Fatalf("claimed %+v, want the job of the other account", got)
		}
		during = s.count(t, transaction, waiting) == began
		if claimed++; claimed == 20 {
			t.Fatal("each claim waited until the purge gave way")
		}
	}
	unlock()
	must(t, <-purged)
	equal(t, claimed, s.count(t, `SELECT count(*) FROM measurement_runs`), "runs are left")
}

// TestChangedRowsAreNotLost: another transaction changes a row between its read by a claim or a settlement and the
// statement that changes it, without the lock that the package takes for such changes. The transaction is repeated, and
// no change is lost.
func TestChangedRowsAreNotLost(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	account := s.account(t)
	s.createRun(t, account, []string{"m1"}, 10, 1)
	claimed := claim(t, d, 2)
	whileChanging := func(change string, f func()) {
		t.Helper()
		tx := begin(t, s.pool, change, account)
		s.whileWaiting(t, f, func() { must(t, tx.Commit(t.Context())) })
	}
	turn := func() int { return s.count(t, `SELECT turn FROM job_turns WHERE account_id = $1`, account) }
	before := turn()
	whileChanging(`UPDATE job_turns SET turn = turn WHERE account_id = $1`, func() { claimed = append(claimed, claim(t, d, 1)...) })
	if len(claimed) != 3 || turn() <= before {
		t.Errorf("%d jobs and turn %d, want 3 and a turn after %d", len(claimed), turn(), before)
	}
	whileChanging(`UPDATE job_leases SET tries = tries WHERE account_id = $1 AND ordinal = 1`, func() {
		settle(t, d, jobs.Completed, claimed[:2]...)
	})
	equal(t, 0, s.count(t, `SELECT count(*) FROM job_leases WHERE ordinal <= 2`), "leases of settled jobs are left")
	whileChanging(`UPDATE job_turns SET turn = turn WHERE account_id = $1`, func() { claimed = append(claimed, claim(t, d, 7)...) })
	if n := s.count(t, `SELECT count(*) FROM job_turns`); len(claimed) != 10 || n != 0 {
		t.Errorf("%d jobs and %d turns, want 10 and no turn", len(claimed), n)
	}
	settle(t, d, jobs.Released, claimed[2])
	sweep(t, d) // makes the lease ready
	whileChanging(`UPDATE job_leases SET tries = tries WHERE account_id = $1 AND ordinal = 3`, func() { copy(claimed[2:], claim(t, d, 1)) })
	settle(t, d, jobs.Completed, claimed[2:]...)
}

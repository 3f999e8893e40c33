package jobs

import (
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestWaitingClaimsGetJobs: claims that wait get a job each after one poll, which wakes the first, and end when the
// process stops. A process polls soon after there is a job.
func TestWaitingClaimsGetJobs(t *testing.T) {
	s := newSite(t)
	other := s.goClaim(ClaimRequest{Providers: []string{"p2"}, Wait: time.Hour})
	claims := []func() ([]Job, error){s.goClaim(ClaimRequest{Wait: time.Hour}), s.goClaim(ClaimRequest{Wait: time.Hour})}
	storetest.Eventually(t, "all wait", func() bool { return s.d.Stats().Waiting == 3 })
	s.order(2)
	must(t, s.d.poll(t.Context()))
	for _, claim := range claims {
		if got, err := claim(); len(got) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
	}
	s.d.Stop()
	if got, err := other(); len(got) != 0 || err != nil {
		t.Errorf("at the end: got %v, %v", got, err)
	}
	s = s.process()
	first := s.goClaim(ClaimRequest{Wait: time.Hour})
	storetest.Eventually(t, "it waits", func() bool { return s.d.Stats().Waiting == 1 })
	s.order(1)
	if got, err := first(); len(got) != 1 {
		t.Errorf("from a process: got %v, %v", got, err)
	}
}

// whileWaiting starts f, calls then when it waits for another transaction, and waits for its end.
func (s *site) whileWaiting(f, then func()) {
	s.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	storetest.UntilWaiting(s.t, s.pool, "transactionid")
	then()
	<-done
}

// TestLockedRun: while another session has locked a run, settlements of another run do not wait, and its leases end. A
// settlement or a sweep that has waited for the run finds the leases as they are then.
func TestLockedRun(t *testing.T) {
	storetest.SkipOnCitus(t, "a cluster does not pass on the time that a transaction waits for locks")
	s := newSite(t)
	account := s.account()
	locked := s.orderOf(account, "m1", 20, 1)
	s.orderOf(account, "m1", 2, 1)
	var held []Job
	for range 22 {
		held = append(held, s.claim(1)...) // 20 leases are as many as a step ends
	}
	impatient := s.on(s.dispatcher(Config{}))
	sweep := func(d *Dispatcher, want int, what string) {
		t.Helper()
		n, err := d.Sweep(t.Context())
		must(t, err)
		equal(t, want, n, "leases: ", what)
	}
	whileLocked := func(f, then func()) {
		t.Helper()
		tx := storetest.Begin(t, s.pool, `SELECT FROM measurement_runs WHERE id = $1 FOR UPDATE`, locked)
		s.whileWaiting(f, func() {
			then()
			must(t, tx.Rollback(t.Context()))
		})
	}
	whileLocked(func() { equal(t, "stale", impatient.settle(Completed, held[0]), "the job whose lease has ended") }, func() {
		equal(t, "settled", impatient.settle(Completed, held[20]), "the job of another run")
		s.pass(time.Hour)
		sweep(impatient.d, 1, "the job of the other run")
	})
	whileLocked(func() { sweep(s.d, 19, "jobs of the locked run but the renewed one") }, func() {
		s.exec(`UPDATE job_leases SET until = now() + interval '1 h' WHERE run_id = $1 AND ordinal = 1`, locked)
	})
}

// TestStoppedProcess: a process that stops in the middle of a settlement, or while it cancels a run, does not stop the
// claims of others, for jobs that were returned or never claimed.
func TestStoppedProcess(t *testing.T) {
	s := newSite(t)
	a := s.account()
	s.orderOf(a, "m1", 1, 1)
	rest := s.orderOf(a, "m1", 2, 1)
	held := s.claim(3)
	s.settle(Released, held[2])
	both := []Settlement{settlement(held[0], Completed), settlement(held[1], Completed)} // one of each run
	idle := storetest.WithIdleBound(t, s.pool)
	settled := s.whileStopped(idle, "INSERT INTO job_results", func(pool *pgxpool.Pool) error {
		return ignore(s.dispatcher(Config{Pool: pool}).Settle(t.Context(), Reporter{}, both))
	}, func() { s.claimInTime(rest) })
	equal(t, "settled settled", s.report(Reporter{}, both...), "settled by another process")

	run := s.orderOf(a, "m1", 2, 1)
	canceled := s.whileStopped(idle, "INSERT INTO account_months", func(pool *pgxpool.Pool) error {
		return ignore(runs.New(runs.Config{Pool: pool, Timeout: time.Minute}).Cancel(t.Context(), a, run))
	}, func() { s.claimInTime(run) })
	if settled == nil || canceled == nil {
		t.Errorf("the stopped processes were acknowledged: %v, %v", settled, canceled)
	}
}

// whileStopped calls then while a process with the connections of a pool is stopped in f, before it sends a statement
// that contains sql. It returns the error of f.
func (s *site) whileStopped(pool *pgxpool.Pool, sql string, f func(*pgxpool.Pool) error, then func()) error {
	s.t.Helper()
	process, stopped, goOn := storetest.HeldUp(s.t, pool, sql)
	ended := make(chan error, 1)
	go func() { ended <- f(process) }()
	select {
	case <-stopped:
	case err := <-ended:
		s.t.Fatalf("the process was not stopped: %v", err)
	}
	then()
	goOn()
	return <-ended
}

// claimInTime claims a job of a run whose row a stopped process has locked. A cluster gives up on locks before the
// stopped process must have released the row.
func (s *site) claimInTime(run store.ID) {
	s.t.Helper()
	got, err := s.d.Claim(s.t.Context(), request(ClaimRequest{}))
	for storetest.OnCitus() && store.IsLockTimeout(err) {
		got, err = s.d.Claim(s.t.Context(), request(ClaimRequest{}))
	}
	if err != nil || len(got) != 1 || got[0].Key.Run != run {
		s.t.Errorf("claimed %+v, %v", got, err)
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

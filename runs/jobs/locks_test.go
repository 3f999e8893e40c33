package jobs

import (
	"testing"
	"time"

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
		sweep(impatient.d, 1, "the one of the other run")
	})
	whileLocked(func() { sweep(s.d, 19, "those of the locked run but the renewed one") }, func() {
		s.exec(`UPDATE job_leases SET until = now() + interval '1 h' WHERE run_id = $1 AND ordinal = 1`, locked)
	})
}

package jobs

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

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

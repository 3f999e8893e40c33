package jobs

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestStoppedProcess: a process that stops in the middle of a settlement does not stop the claims of others, for jobs
// that were returned.
func TestStoppedProcess(t *testing.T) {
	s := newSite(t)
	a := s.account()
	s.orderOf(a, "m1", 1, 1)
	rest := s.orderOf(a, "m1", 2, 1)
	held := s.claim(3)
	s.settle(Released, held[2])
	both := []Settlement{settlement(held[0], Completed), settlement(held[1], Completed)} // one of each run
	s.whileStopped("INSERT INTO job_results", func(pool *pgxpool.Pool) error {
		d := s.dispatcher(Config{Pool: pool})
		return ignore(d.Settle(t.Context(), Reporter{}, both))
	}, func() { s.claimInTime(rest) })
	equal(t, "settled settled", s.report(Reporter{}, both...), "settled by another process")
}

// TestStoppedCancel: a process that stops while it cancels a run does not stop the claims of others.
func TestStoppedCancel(t *testing.T) {
	s := newSite(t)
	a := s.account()
	run := s.orderOf(a, "m1", 2, 1)
	s.whileStopped("cancel_run", func(pool *pgxpool.Pool) error {
		return ignore(runs.New(runs.Config{Pool: pool, Timeout: time.Minute}).Cancel(t.Context(), a, run))
	}, func() { s.claimInTime(run) })
}

// TestStoppedClaim: a process that stops while it hands out jobs does not stop the claims of others.
func TestStoppedClaim(t *testing.T) {
	s := newSite(t)
	patient := s.on(s.dispatcher(Config{Pool: s.open(t, "")}))
	s.order(1)
	s.whileStopped("pg_advisory_xact_lock", func(pool *pgxpool.Pool) error {
		return ignore(s.dispatcher(Config{Pool: pool}).Claim(t.Context(), request(ClaimRequest{})))
	}, func() { equal(t, 1, len(patient.claim(1)), "jobs") })
}

// whileStopped calls then while a process is stopped in f, after a statement that contains sql. Afterwards f must fail.
func (s *site) whileStopped(sql string, f func(*pgxpool.Pool) error, then func()) {
	s.t.Helper()
	stop := newStopper(s.t, storetest.WithIdleBound(s.t, s.pool), sql)
	ended := make(chan error, 1)
	go func() { ended <- f(stop.pool) }()
	select {
	case <-stop.stopped:
	case err := <-ended:
		s.t.Fatalf("the process was not stopped: %v", err)
	}
	then()
	stop.release()
	if err := <-ended; err == nil {
		s.t.Error("what the stopped process did was acknowledged")
	}
}

// claimInTime claims a job of a run whose row a stopped process has locked. A cluster gives up on locks before the
// stopped process must have released the row.
func (s *site) claimInTime(run store.ID) {
	s.t.Helper()
	for {
		got, err := s.d.Claim(s.t.Context(), request(ClaimRequest{}))
		if storetest.OnCitus() && store.IsLockTimeout(err) {
			continue
		}
		if err != nil || len(got) != 1 || got[0].Key.Run != run {
			s.t.Errorf("claimed %+v, %v", got, err)
		}
		return
	}
}

// A stopper stops a process after its first batch with a statement that contains sql.
type stopper struct {
	storetest.Statements
	pool    *pgxpool.Pool // of the process
	sql     string
	once    sync.Once
	stopped chan struct{}
	over    context.Context
	release context.CancelFunc
}

type stopperKey struct{}

// newStopper returns a stopper of a process with the connections of a pool.
func newStopper(t testing.TB, pool *pgxpool.Pool, sql string) *stopper {
	t.Helper()
	s := &stopper{sql: sql, stopped: make(chan struct{})}
	s.over, s.release = context.WithCancel(context.Background())
	s.pool = storetest.WithTracer(t, pool, s)
	t.Cleanup(s.release) // before the pool is closed, which waits for the connection
	return s
}

func (s *stopper) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, stopperKey{}, new(bool))
}

func (s *stopper) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	if strings.Contains(q.SQL, s.sql) {
		*ctx.Value(stopperKey{}).(*bool) = true
	}
}

func (s *stopper) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	if *ctx.Value(stopperKey{}).(*bool) {
		s.once.Do(func() {
			close(s.stopped)
			<-s.over.Done()
		})
	}
}

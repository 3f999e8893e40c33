package jobs

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestStoppedProcess: a process that stops in the middle of a settlement does not stop the claims of others, for jobs
// that were returned.
func TestStoppedProcess(t *testing.T) {
	s := newSite(t)
	h := newHalt(t)
	stopped := s.dispatcher(Config{Pool: s.open(t, ""), Timeout: 20 * time.Second, Finished: h.finished})
	a := s.account()
	s.orderOf(a, "m1", 1, 1)
	rest := s.orderOf(a, "m1", 2, 1)
	held := s.claim(3)
	s.settle(Released, held[2])
	both := []Settlement{settlement(held[0], Completed), settlement(held[1], Completed)} // one of each run
	h.during(func() error { return ignore(stopped.Settle(t.Context(), Reporter{}, both)) }, func() { s.claimInTime(rest) })
	equal(t, "settled settled", s.report(Reporter{}, both...), "settled by another process")
}

// TestStoppedCancel: a process that stops while it cancels a run does not stop the claims of others.
func TestStoppedCancel(t *testing.T) {
	s := newSite(t)
	h := newHalt(t)
	stopped := runs.New(runs.Config{Pool: s.open(t, ""), Timeout: 20 * time.Second, Finished: h.finished})
	a := s.account()
	run := s.orderOf(a, "m1", 2, 1)
	h.during(func() error { return ignore(stopped.Cancel(t.Context(), a, run)) }, func() { s.claimInTime(run) })
}

// A halt stops a process in the transaction that makes a run final, before its commit.
type halt struct {
	t     *testing.T
	began chan struct{}
	over  context.Context
	end   context.CancelFunc
}

// newHalt returns a halt that ends with the test.
func newHalt(t *testing.T) *halt {
	h := &halt{t: t, began: make(chan struct{})}
	h.over, h.end = context.WithCancel(context.Background())
	return h
}

func (h *halt) finished(context.Context, store.Tx, []runs.Run) error {
	close(h.began)
	<-h.over.Done()
	return nil
}

// during calls then while a process is stopped in f, which must fail afterwards.
func (h *halt) during(f func() error, then func()) {
	h.t.Helper()
	h.t.Cleanup(h.end) // before the pools are closed, which wait for the connection
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case <-h.began:
	case err := <-ended:
		h.t.Fatalf("the process was not stopped: %v", err)
	}
	then()
	h.end()
	if err := <-ended; err == nil {
		h.t.Error("what the stopped process did was acknowledged")
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

// TestStoppedClaim: a process that stops while it hands out jobs does not stop the claims of others.
func TestStoppedClaim(t *testing.T) {
	s := newSite(t)
	stop := newStopper("pg_advisory_xact_lock")
	stopped := s.on(s.dispatcher(Config{Pool: storetest.WithTracer(t, s.pool, stop)}))
	t.Cleanup(stop.release) // before its pool is closed, which waits for the connection
	patient := s.on(s.dispatcher(Config{Pool: s.open(t, "&lock_timeout=25s")}))
	s.order(1)
	claimed := stopped.goClaim(t.Context(), ClaimRequest{})
	<-stop.stopped
	equal(t, 1, len(patient.claim(1)), "jobs")
	stop.release()
	if (<-claimed).err == nil {
		t.Error("the claim of the stopped process was answered")
	}
}

// A stopper stops its process after the first batch with a statement that contains sql.
type stopper struct {
	storetest.Statements
	sql     string
	once    sync.Once
	stopped chan struct{}
	over    context.Context
	release context.CancelFunc
}

type stopperKey struct{}

func newStopper(sql string) *stopper {
	s := &stopper{sql: sql, stopped: make(chan struct{})}
	s.over, s.release = context.WithCancel(context.Background())
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

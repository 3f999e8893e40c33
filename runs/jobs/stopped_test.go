package jobs_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestStoppedProcess: a process that stops in the middle of a settlement does not stop the claims of others, for jobs
// that were returned.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	s, other := start(t)
	pool := s.open(t)
	p := newPause(t)
	stopped := jobs.New(jobs.Config{Pool: pool, Timeout: 20 * time.Second, MaxWaiting: 10, Finished: p.finished})
	a := s.account(t)
	s.createRun(t, a, []string{"m1"}, 1, 1)
	rest := s.createRun(t, a, []string{"m1"}, 2, 1)
	held := claim(t, other, 3)
	settle(t, other, jobs.Released, held[2])
	held = held[:2] // the first run's job, and one of the second
	settled := make(chan error, 1)
	go func() {
		_, err := stopped.Settle(t.Context(), jobs.Reporter{}, []jobs.Settlement{settlement(held[0], jobs.Completed), settlement(held[1], jobs.Completed)})
		settled <- err
	}()
	p.wait(t, settled)
	got := claimInTime(t, other)
	if len(got) != 1 || got[0].Key.Run != rest {
		t.Errorf("claimed %+v", got)
	}
	p.end()
	if err := <-settled; err == nil {
		t.Error("the settlement of the stopped process was acknowledged")
	}
	equal(t, []string{jobs.Settled, jobs.Settled}, settle(t, other, jobs.Completed, held...), "settled by another process")
}

// A pause stops a process in the transaction that makes a run final, before its commit.
type pause struct {
	began chan struct{}
	over  context.Context
	end   context.CancelFunc
}

// newPause returns a pause that ends with the test, before the pools are closed that were opened before: they wait for
// the connection.
func newPause(t *testing.T) *pause {
	p := &pause{began: make(chan struct{})}
	p.over, p.end = context.WithCancel(context.Background())
	t.Cleanup(p.end)
	return p
}

func (p *pause) finished(context.Context, store.Tx, []runs.Run) error {
	close(p.began)
	<-p.over.Done()
	return nil
}

// wait waits until the pause has begun. ended gets what the process did.
func (p *pause) wait(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case <-p.began:
	case err := <-ended:
		t.Fatalf("the process was not stopped: %v", err)
	}
}

// claimInTime claims a job of a run whose row a stopped process has locked. A cluster gives up on locks before the
// stopped process must have released the row.
func claimInTime(t *testing.T, d *jobs.Dispatcher) []jobs.Job {
	t.Helper()
	for {
		got, err := d.Claim(t.Context(), &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute})
		if !storetest.OnCitus() || !store.IsLockTimeout(err) {
			must(t, err)
			return got
		}
	}
}

// TestStoppedCancel: a process that stops while it cancels a run does not stop the claims of others.
func TestStoppedCancel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pool := s.open(t)
	p := newPause(t)
	stopped := runs.New(runs.Config{Pool: pool, Timeout: 20 * time.Second, Finished: p.finished})
	a := s.account(t)
	run := s.createRun(t, a, []string{"m1"}, 2, 1)
	canceled := make(chan error, 1)
	go func() {
		_, err := stopped.Cancel(t.Context(), a, run)
		canceled <- err
	}()
	p.wait(t, canceled)
	if got := claimInTime(t, s.dispatcher(t)); len(got) != 1 || got[0].Key.Run != run {
		t.Errorf("claimed %+v", got)
	}
	p.end()
	if err := <-canceled; err == nil {
		t.Error("the cancellation of the stopped process was acknowledged")
	}
}

// TestStoppedClaim: a process that stops while it hands out jobs does not stop the claims of others.
func TestStoppedClaim(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := newStopper("pg_advisory_xact_lock")
	pool := storetest.WithTracer(t, s.pool, stop)
	release := sync.OnceFunc(func() { close(stop.release) })
	t.Cleanup(release) // before its pool is closed, which waits for the connection
	patient, err := store.OpenHot(t.Context(), s.url+"&lock_timeout=25s", 2)
	must(t, err)
	t.Cleanup(patient.Close)

	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	stopped := jobs.New(jobs.Config{Pool: pool, Timeout: time.Minute, MaxWaiting: 10})
	claimed := goClaim(t.Context(), stopped, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute})
	<-stop.stopped
	got := claim(t, jobs.New(jobs.Config{Pool: patient, Timeout: time.Minute, MaxWaiting: 10}), 1)
	release()
	equal(t, 1, len(got), "jobs")
	if (<-claimed).err == nil {
		t.Error("the claim of the stopped process was answered")
	}
}

// A stopper stops its process after the first batch with a statement that contains sql.
type stopper struct {
	storetest.Statements
	sql              string
	once             sync.Once
	stopped, release chan struct{}
}

type stopperKey struct{}

func newStopper(sql string) *stopper {
	return &stopper{sql: sql, stopped: make(chan struct{}), release: make(chan struct{})}
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
			<-s.release
		})
	}
}

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// answer is what an order came to, when done is closed.
type answer struct {
	done    chan struct{}
	receipt *runs.CreateResult
	err     error
}

// crowd gives many orders at once while the first one is under way, so that the rest share a statement.
func (s *site) crowd(t *testing.T, r *runs.Runs, orders []*runs.CreateRequest) []*answer {
	t.Helper()
	release := s.holdAccount(t)
	answers := s.behind(t, "advisory", r, orders)
	release()
	return answers
}

// behind gives the first order, and when it waits for a lock of the given kind, which is held, the others.
func (s *site) behind(t *testing.T, lock string, r *runs.Runs, orders []*runs.CreateRequest) []*answer {
	t.Helper()
	answers := make([]*answer, len(orders))
	var coming sync.WaitGroup
	give := func(i int) {
		coming.Add(1)
		encode := orders[i].Answer
		orders[i].Answer = func(run *runs.Run) []byte { // the last thing before an order waits
			defer coming.Done()
			return encode(run)
		}
		a := &answer{done: make(chan struct{})}
		answers[i] = a
		go func() {
			defer close(a.done)
			a.receipt, a.err = r.Create(t.Context(), orders[i])
		}()
	}
	give(0)
	s.waiting(t, lock)
	for i := 1; i < len(orders); i++ {
		give(i)
	}
	coming.Wait()
	return answers
}

// TestOnlyTheCulpritFails: what the database refuses of one order does not fail those that share its statement.
func TestOnlyTheCulpritFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	const n = 40
	culprits := map[int]struct {
		code   string
		change func(*runs.CreateRequest)
	}{
		13: {"23514", func(o *runs.CreateRequest) { o.Key = strings.Repeat("k", 256) }},
		14: {"23514", func(o *runs.CreateRequest) { o.Proposal.ModelIDs = nil }},
		21: {"22021", func(o *runs.CreateRequest) { o.Proposal.Country = "\x00" }},
	}
	var orders []*runs.CreateRequest
	for i := range n {
		o := s.order(fmt.Sprint(i), 1, 2, 3)
		if c, ok := culprits[i]; ok {
			c.change(o)
		}
		orders = append(orders, o)
	}
	for i, a := range s.crowd(t, r, orders) {
		<-a.done
		e, _ := errors.AsType[*pgconn.PgError](a.err)
		switch c, culprit := culprits[i]; {
		case culprit && (e == nil || e.Code != c.code):
			t.Errorf("culprit %d: got %v, %v, want an error %s", i, a.receipt, a.err, c.code)
		case !culprit && (a.err != nil || a.receipt.Replayed):
			t.Errorf("neighbour %d: got %v, %v", i, a.receipt, a.err)
		}
	}
	s.wantRuns(t, n-len(culprits))
}

// TestConnectionDies in the middle of a statement that has claimed its key: nothing is written, and the key is free.
func TestConnectionDies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	release := s.holdAccount(t)
	ended := make(chan error)
	go func() {
		_, err := r.Create(t.Context(), s.order("key", 5, 5, 5))
		ended <- err
	}()
	_, err := s.pool.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, s.waiting(t, "advisory"))
	must(t, err)
	if err := <-ended; err == nil || !store.IsUnavailable(err) {
		t.Errorf("got %v, want an error that passes", err)
	}
	s.wantRuns(t, 0)
	release()
	if receipt := create(t, r, s.order("key", 5, 5, 5)); receipt.Replayed {
		t.Error("what died is replayed")
	}
	s.wantRuns(t, 1)
}

// TestConnectionsKeepDying: clients that try again, as they are told to, have each order written once.
func TestConnectionsKeepDying(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const orders = 60
	processes := []*runs.Runs{s.process(t, "&application_name=victim", always), s.process(t, "&application_name=victim", always)}
	release := sync.OnceFunc(s.holdAccount(t)) // until some have died while they waited
	var wg sync.WaitGroup
	for i := range orders {
		wg.Go(func() {
			var first *runs.CreateResult
			for try := 0; first == nil; try++ {
				var err error
				first, err = processes[(i+try)%2].Create(t.Context(), s.order(fmt.Sprint(i), 1+i%3, 1+i, 10))
				if err != nil && (!store.IsUnavailable(err) || try == 1000) {
					t.Errorf("order %d: %v", i, err)
					return
				}
			}
		})
	}
	killed, done := 0, make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for dying := true; dying; {
		select {
		case <-done:
			dying = false
		default:
			var n int
			must(t, s.pool.QueryRow(t.Context(), `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE application_name = 'victim' AND state = 'active' AND query LIKE '%idempotency_records%' LIMIT 1 OFFSET 0) k`).Scan(&n))
			if killed += n; killed >= 3 {
				release()
			}
			if killed >= 25 {
				<-done
			}
		}
	}
	s.wantRuns(t, orders)
}

// TestLockOnATable: a lock that all runs of a statement wait for fails them together; none is sent again alone, only to
// wait as long once more.
func TestLockOnATable(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	config := s.open(t, "&lock_timeout=1s").Config()
	var asked statements
	config.ConnConfig.Tracer = &asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	r := runs.New(runs.Config{Pool: pool, Checks: checker(always), NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 100})
	tx, err := s.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), `LOCK TABLE usage_records`)
	must(t, err)
	var orders []*runs.CreateRequest
	for i := range 40 {
		orders = append(orders, s.order(fmt.Sprint(i), 1, 1, 1))
	}
	for i, a := range s.behind(t, "relation", r, orders) {
		if <-a.done; a.err == nil || !store.IsUnavailable(a.err) || errors.Is(a.err, runs.ErrKeyInUse) {
			t.Errorf("order %d: got %v, %v, want an error that passes", i, a.receipt, a.err)
		}
	}
	if n := asked.n.Load(); n > 2 { // the first order's, and that of all who came meanwhile
		t.Errorf("%d orders were given to the database by %d statements", len(orders), n)
	}
	must(t, tx.Rollback(t.Context()))
	s.wantRuns(t, 0)
}

// statements counts those that a pool's connections carry out.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestChecksCannotTell: where the checks fail, and the key can't be looked up either, the cause is what failed first.
func TestChecksCannotTell(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	away := errors.New("the catalog can't be read")
	no := &runs.Refusal{Check: "check", Faults: []runs.Fault{{Code: "no"}}}
	pool := s.open(t, "")
	var verdict error
	r := runs.New(runs.Config{Pool: pool, Checks: checker(func(*runs.Proposal) (string, error) { return "", verdict }),
		NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 100})
	pool.Close()
	verdict = away
	if receipt, err := r.Create(t.Context(), s.order("key", 1, 1, 1)); !errors.Is(err, away) {
		t.Errorf("got %v, %v, want %v", receipt, err, away)
	}
	// A refusal is told only of what is known to be no replay.
	verdict = no
	if receipt, err := r.Create(t.Context(), s.order("key", 1, 1, 1)); errors.Is(err, no) || err == nil || !store.IsUnavailable(err) {
		t.Errorf("got %v, %v, want an error that passes", receipt, err)
	}
}

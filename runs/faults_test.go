package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A holdUp is a tracer that holds up a pool once: at its first batch of statements, before that reaches the database, or
// at its first COPY, after the rows were written.
type holdUp struct {
	storetest.Statements
	copies         bool
	once           atomic.Bool
	held, released chan struct{}
}

func (h *holdUp) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	if !h.copies {
		h.hold(ctx)
	}
	return ctx
}

func (h *holdUp) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return ctx
}

func (h *holdUp) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	if h.copies {
		h.hold(ctx)
	}
}

func (h *holdUp) hold(ctx context.Context) {
	if h.once.CompareAndSwap(false, true) {
		close(h.held)
		select {
		case <-h.released:
		case <-ctx.Done():
		}
	}
}

// heldUp returns a process whose first batch, or first COPY, is held up: held is closed when it is, and closing released
// lets it go on.
func (s *site) heldUp(t *testing.T, settings string, copies bool) (*runs.Runs, *holdUp) {
	t.Helper()
	first := &holdUp{copies: copies, held: make(chan struct{}), released: make(chan struct{})}
	return newRuns(runs.Config{Pool: storetest.WithTracer(t, s.open(t, settings), first)}), first
}

// inOneBatch sends requests to a new process while its first batch, which is the first request, is held up. The others
// therefore share the next batch.
func (s *site) inOneBatch(t *testing.T, settings string, requests []*runs.CreateRequest) (*runs.Runs, []*outcome) {
	t.Helper()
	r, first := s.heldUp(t, settings, false)
	var outcomes []*outcome
	for i, q := range requests {
		outcomes = append(outcomes, goCreate(t.Context(), r, q))
		if i == 0 {
			<-first.held
		}
	}
	storetest.Eventually(t, "the others wait", func() bool {
		n := r.Stats()
		return n.Small.Waiting+n.Metered.Waiting == len(requests)-1
	})
	close(first.released)
	return r, outcomes
}

// TestOnlyTheCulpritFails: an error that one request causes does not fail the others of its batch.
func TestOnlyTheCulpritFails(t *testing.T) {
	s := newSite(t)
	requests := s.numbered(40)
	requests[13].Key = strings.Repeat("k", 256)
	requests[14].Proposal.ModelIDs = nil
	requests[21].Proposal.Country = "\x00"
	codes := map[int]string{13: "23514", 14: "23514", 21: "22021"}
	_, outcomes := s.inOneBatch(t, "", requests)
	for i, o := range outcomes {
		code, culprit := codes[i]
		if !culprit {
			o.created(t, "request ", i)
			continue
		}
		<-o.done
		e, _ := errors.AsType[*pgconn.PgError](o.err)
		if e == nil || e.Code != code && (e.Code != "XX000" || !storetest.OnCitus()) { // it loses the codes of some errors
			t.Errorf("culprit %d: got %v, %v, want an error %s", i, o.result, o.err, code)
		}
	}
	s.wantRuns(t, len(requests)-len(codes))
}

// TestConnectionsKeepDying: requests that are retried after temporary errors are each written once.
func TestConnectionsKeepDying(t *testing.T) {
	s := newSite(t)
	const n = 60
	processes := []*runs.Runs{s.process(t, "&application_name=victim"), s.process(t, "&application_name=victim")}
	create(t, processes[0], s.request("first", 1, 1, 1))
	// They wait for the month until some have died.
	month := begin(t, s.pool, `SELECT FROM account_months WHERE account_id = $1 FOR UPDATE`, s.credential.AccountID)
	release := sync.OnceFunc(func() { must(t, month.Rollback(t.Context())) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		atOnce(n, func(i int) {
			for try := 0; ; try++ {
				_, err := processes[(i+try)%2].Create(t.Context(), s.request(fmt.Sprint(i), 1+i%3, 1+i%10, 10))
				if err == nil {
					return
				}
				if !store.IsUnavailable(err) || try == 1000 {
					t.Errorf("request %d: %v", i, err)
					return
				}
			}
		})
	}()
	killed := 0
	storetest.Eventually(t, "12 sessions are terminated", func() bool {
		select {
		case <-done:
			return true
		default:
		}
		killed += s.count(t, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'victim' AND state = 'active' LIMIT 1 OFFSET 0) k`)
		if killed >= 3 {
			release()
		}
		return killed >= 12
	})
	<-done
	s.wantRuns(t, 1+n)
}

// TestLockOnATable: a batch that waits for a lock on a table fails as a whole; its requests are not retried
// individually, because each would wait as long again.
func TestLockOnATable(t *testing.T) {
	s := newSite(t)
	storetest.SetLockTimeout(t, s.pool, "200ms")
	tx := begin(t, s.pool, `LOCK TABLE usage_records`)
	r, outcomes := s.inOneBatch(t, "&lock_timeout=200ms", s.numbered(40))
	for i, o := range outcomes {
		if <-o.done; o.err == nil || !store.IsUnavailable(o.err) || errors.Is(o.err, runs.ErrKeyInUse) {
			t.Errorf("request %d: got %v, %v, want a temporary error", i, o.result, o.err)
		}
	}
	if s := r.Stats().Small; s.Failed != 2 || s.Retried > 0 {
		t.Errorf("40 requests were not given to the database as two batches: %+v", s)
	}
	must(t, tx.Rollback(t.Context()))
	s.wantRuns(t, 0)
}

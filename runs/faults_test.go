package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
)

// inOneBatch sends requests while the first one is in flight, so that the others share a batch.
func (s *site) inOneBatch(t *testing.T, r *runs.Runs, requests []*runs.CreateRequest) []*outcome {
	t.Helper()
	release := s.holdAccount(t)
	answers := s.behind(t, "advisory", r, requests)
	release()
	return answers
}

// behind sends the first request and, when it waits for a lock of the given kind, the others.
func (s *site) behind(t *testing.T, lock string, r *runs.Runs, requests []*runs.CreateRequest) []*outcome {
	t.Helper()
	answers := make([]*outcome, len(requests))
	var coming sync.WaitGroup
	give := func(i int) {
		coming.Add(1)
		encode := requests[i].Response
		requests[i].Response = func(run *runs.Run) []byte { // called last before a request waits
			defer coming.Done()
			return encode(run)
		}
		answers[i] = goCreate(t.Context(), r, requests[i])
	}
	give(0)
	s.waiting(t, lock)
	for i := 1; i < len(requests); i++ {
		give(i)
	}
	coming.Wait()
	return answers
}

// TestOnlyTheCulpritFails: an error that one request causes does not fail the others of its batch.
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
	var requests []*runs.CreateRequest
	for i := range n {
		o := s.request(fmt.Sprint(i), 1, 2, 3)
		if c, ok := culprits[i]; ok {
			c.change(o)
		}
		requests = append(requests, o)
	}
	for i, a := range s.inOneBatch(t, r, requests) {
		<-a.done
		e, _ := errors.AsType[*pgconn.PgError](a.err)
		switch c, culprit := culprits[i]; {
		case culprit && (e == nil || e.Code != c.code && (e.Code != "XX000" || !storetest.OnCitus())): // it loses the codes of some errors
			t.Errorf("culprit %d: got %v, %v, want an error %s", i, a.result, a.err, c.code)
		case !culprit && (a.err != nil || a.result.Replayed):
			t.Errorf("request %d of the batch: got %v, %v", i, a.result, a.err)
		}
	}
	s.wantRuns(t, n-len(culprits))
}

// TestConnectionsKeepDying: requests that are retried after temporary errors are each written once.
func TestConnectionsKeepDying(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const n = 60
	processes := []*runs.Runs{s.process(t, "&application_name=victim", always), s.process(t, "&application_name=victim", always)}
	release := sync.OnceFunc(s.holdAccount(t)) // until some have died while they waited
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var first *runs.CreateResult
			for try := 0; first == nil; try++ {
				var err error
				first, err = processes[(i+try)%2].Create(t.Context(), s.request(fmt.Sprint(i), 1+i%3, 1+i%10, 10))
				if err != nil && (!store.IsUnavailable(err) || try == 1000) {
					t.Errorf("request %d: %v", i, err)
					return
				}
			}
		})
	}
	killed, done := 0, make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	storetest.Eventually(t, "12 sessions are terminated", func() bool {
		select {
		case <-done:
			return true
		default:
		}
		killed += s.count(t, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'victim' AND state = 'active' AND query LIKE '%idempotency_records%' LIMIT 1 OFFSET 0) k`)
		if killed >= 3 {
			release()
		}
		return killed >= 12
	})
	<-done
	s.wantRuns(t, n)
}

// TestLockOnATable: a batch that waits for a lock on a table fails as a whole; its requests are not retried
// individually, because each would wait as long again.
func TestLockOnATable(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	storetest.SetLockTimeout(t, s.pool, "1s")
	r := s.process(t, "&lock_timeout=1s", always)
	tx := begin(t, s.pool, `LOCK TABLE usage_records`)
	var requests []*runs.CreateRequest
	for i := range 40 {
		requests = append(requests, s.request(fmt.Sprint(i), 1, 1, 1))
	}
	for i, a := range s.behind(t, "relation", r, requests) {
		if <-a.done; a.err == nil || !store.IsUnavailable(a.err) || errors.Is(a.err, runs.ErrKeyInUse) {
			t.Errorf("request %d: got %v, %v, want a temporary error", i, a.result, a.err)
		}
	}
	if s := r.Stats().Small; s.Failed > 2 || s.Retried > 0 { // that of the first request, and that of all others
		t.Errorf("%d requests were given to the database in other batches: %+v", len(requests), s)
	}
	must(t, tx.Rollback(t.Context()))
	s.wantRuns(t, 0)
}

// TestChecksFail: when the checks fail and the key cannot be looked up either, the error is the first one.
func TestChecksFail(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	away := errors.New("the catalog can't be read")
	no := &runs.Refusal{Check: "check", Faults: []runs.Fault{{Code: "no"}}}
	pool, err := store.OpenHot(t.Context(), s.url, 1)
	must(t, err)
	var verdict error
	r := runs.New(runs.Config{Pool: pool, Checks: checker(func(*runs.Proposal) (string, error) { return "", verdict }),
		NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 100})
	pool.Close()
	verdict = away
	if _, err := r.Create(t.Context(), s.request("key", 1, 1, 1)); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	// A refusal is returned only when the request is known not to be a replay.
	verdict = no
	if _, err := r.Create(t.Context(), s.request("key", 1, 1, 1)); errors.Is(err, no) || !store.IsUnavailable(err) {
		t.Errorf("got %v, want a temporary error", err)
	}
}

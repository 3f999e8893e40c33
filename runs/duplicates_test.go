package runs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// claim begins a transaction that claims a key and does not end until it gives up.
func (s *site) claim(t *testing.T, key string) (giveUp func()) {
	t.Helper()
	tx := begin(t, s.pool, `SET LOCAL session_replication_role = replica`) // so that its run need not be there
	must(t, ignore(tx.Exec(t.Context(), `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
		VALUES ($1, 'POST', '/v1/runs', $2, sha256(''), $3, '')`, s.credential.AccountID, key, store.NewID())))
	return func() { must(t, tx.Rollback(t.Context())) }
}

// TestDuplicateInFlight: a duplicate whose transaction does not end makes only requests with the same key fail.
func TestDuplicateInFlight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// The duplicate in another process waits for the gate.
	patient := s.process(t, "&lock_timeout=60s", always)
	release := s.holdAccount(t)
	duplicate := make(chan *runs.CreateResult)
	go func() {
		result, err := patient.Create(t.Context(), s.request("duplicate", 1, 1, 1))
		if err != nil {
			t.Error(err)
		}
		duplicate <- result
	}()
	s.waiting(t, "advisory")
	storetest.SetLockTimeout(t, s.pool, "100ms")
	impatient := s.process(t, "&lock_timeout=100ms", always)
	if result, err := impatient.Create(t.Context(), s.request("duplicate", 1, 1, 1)); !errors.Is(err, runs.ErrKeyInUse) {
		t.Errorf("a duplicate in flight: got %v, %v", result, err)
	}
	// Waiting for another lock is another error.
	if result, err := impatient.Create(t.Context(), s.request("other", 1, 1, 1)); err == nil || errors.Is(err, runs.ErrKeyInUse) || !store.IsUnavailable(err) {
		t.Errorf("waiting for another lock: got %v, %v", result, err)
	}
	neighbor := s.customer(t)
	o := s.request("duplicate", 1, 1, 1)
	o.Proposal.Orderer = runs.OrdererOf(neighbor)
	if result := create(t, impatient, o); result.Replayed {
		t.Error("the same key of another account is replayed")
	}
	release()
	first := <-duplicate
	if t.Failed() {
		return
	}
	replays(t, impatient, s.request("duplicate", 1, 1, 1), first)
	create(t, impatient, s.request("other", 1, 1, 1))
	s.wantRuns(t, 3)
}

// TestDuplicateRollsBack: when a duplicate rolls back, the waiting request creates the run.
func TestDuplicateRollsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	giveUp := s.claim(t, "key")
	var result *runs.CreateResult
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if result, err = r.Create(t.Context(), s.request("key", 1, 1, 1)); err != nil {
			t.Error(err)
		}
	})
	s.waiting(t, "transactionid")
	giveUp()
	wg.Wait()
	if result == nil || result.Replayed {
		t.Errorf("got %v, want a new run", result)
	}
	s.wantRuns(t, 1)
}

// TestDuplicateAlone: a request that waits for a duplicate delays no other request, even if it is alone in its batch.
func TestDuplicateAlone(t *testing.T) {
	t.Parallel()
	for name, repetitions := range map[string]int64{"small": 1, "large": 5001} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			storetest.SetLockTimeout(t, s.pool, "2s")
			r := s.process(t, "&lock_timeout=0&statement_timeout=0", always)
			giveUp := s.claim(t, "key")
			var wg sync.WaitGroup
			for range 5 { // more than may be retried at a time
				wg.Go(func() {
					_, err := r.Create(t.Context(), s.request("key", 1, 1, repetitions))
					if storetest.OnCitus() && errors.Is(err, runs.ErrKeyInUse) {
						return // a cluster gives up on locks sooner
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			s.waiting(t, "transactionid")
			for i := range 2 {
				create(t, r, s.request(fmt.Sprint(i), 1, 1, repetitions))
			}
			giveUp()
			wg.Wait()
			_, err := r.Create(t.Context(), s.request("key", 1, 1, repetitions))
			must(t, err)
			s.wantRuns(t, 3)
		})
	}
}

// TestCancelBeforeTheBatch: a request whose caller gave up before its batch started is not written.
func TestCancelBeforeTheBatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "&lock_timeout=0&statement_timeout=0", always)
	release := s.holdAccount(t)
	done := make(chan error)
	go func() {
		_, err := r.Create(t.Context(), s.request("first", 1, 1, 1))
		done <- err
	}()
	s.waiting(t, "advisory")
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := r.Create(ctx, s.request("second", 1, 1, 1))
		gone <- err
	}()
	storetest.Eventually(t, "the second request waits", func() bool { return r.Stats().Small.Waiting > 0 })
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gave up got %v", err)
	}
	release()
	must(t, <-done)
	create(t, r, s.request("third", 1, 1, 1))
	s.wantRuns(t, 2)
}

// TestBatchWithADuplicate: requests in one batch with a request that waits for a duplicate are written while it waits.
// The batch waits briefly for a key, whatever the session's settings; then its requests are retried individually, and
// the one waits as long as the session's settings allow.
func TestBatchWithADuplicate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings string
		giveUp         bool  // the duplicate rolls back when all others are written
		want           error // of the waiting request
		runs           int
	}{
		{"the duplicate rolls back", "&lock_timeout=0&statement_timeout=0", true, nil, 20},
		{"the duplicate never ends", "&lock_timeout=2s", false, runs.ErrKeyInUse, 19},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			storetest.SetLockTimeout(t, s.pool, "5s") // on a cluster also that of a batch
			giveUp := s.claim(t, "5")
			var requests []*runs.CreateRequest
			for i := range 20 {
				requests = append(requests, s.request(fmt.Sprint(i), 1, 1, 1))
			}
			answers := s.inOneBatch(t, s.process(t, test.settings, always), requests)
			for i, a := range answers {
				if i == 5 {
					continue
				}
				if <-a.done; a.err != nil || a.result.Replayed {
					t.Errorf("request %d of the batch: got %v, %v", i, a.result, a.err)
				}
			}
			one := answers[5]
			if test.giveUp {
				s.waiting(t, "transactionid")
				select {
				case <-one.done:
					t.Errorf("the waiting request returned early: %v, %v", one.result, one.err)
				default:
				}
				giveUp()
			}
			<-one.done
			if !errors.Is(one.err, test.want) || test.want == nil && one.result.Replayed {
				t.Errorf("the waiting request: got %v, %v, want %v", one.result, one.err, test.want)
			}
			s.wantRuns(t, test.runs)
		})
	}
}

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"aiv/runs"
	"aiv/store"
)

// claim begins a transaction that claims a key and does not end until it gives up.
func (s *site) claim(t *testing.T, key string) (giveUp func()) {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`) // so that its run need not be there
	must(t, err)
	_, err = tx.Exec(t.Context(), `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
		VALUES ($1, 'POST', '/v1/runs', $2, sha256(''), $3, '')`, s.credential.AccountID, key, store.NewID())
	must(t, err)
	return func() { must(t, tx.Rollback(t.Context())) }
}

// TestTwinInFlight: a twin's transaction that does not end makes one order fail, for a while, and no other.
func TestTwinInFlight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	impatient := s.process(t, "&lock_timeout=100ms", always)
	// A twin in another process that does not come to an end; only the gate is in its way.
	patient := s.process(t, "&lock_timeout=60s", always)
	release := s.holdAccount(t)
	twin := make(chan *runs.CreateResult)
	go func() {
		receipt, err := patient.Create(t.Context(), s.order("twin", 1, 1, 1))
		if err != nil {
			t.Error(err)
		}
		twin <- receipt
	}()
	s.waiting(t, "advisory")
	if receipt, err := impatient.Create(t.Context(), s.order("twin", 1, 1, 1)); !errors.Is(err, runs.ErrKeyInUse) {
		t.Errorf("a twin in flight: got %v, %v", receipt, err)
	}
	// Whoever waits for something else is told so.
	if receipt, err := impatient.Create(t.Context(), s.order("other", 1, 1, 1)); err == nil || errors.Is(err, runs.ErrKeyInUse) || !store.IsUnavailable(err) {
		t.Errorf("waiting for another lock: got %v, %v", receipt, err)
	}
	neighbour := s.customer(t)
	o := s.order("twin", 1, 1, 1)
	o.Proposal.Credential = neighbour
	if receipt := create(t, impatient, o); receipt.Replayed {
		t.Error("another account's key is taken for this one")
	}
	release()
	first := <-twin
	if t.Failed() {
		return
	}
	replays(t, impatient, s.order("twin", 1, 1, 1), first)
	create(t, impatient, s.order("other", 1, 1, 1))
	s.wantRuns(t, 3)
}

// TestTwinThatGivesUp: a twin that rolls back leaves the key to who waits for it.
func TestTwinThatGivesUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	giveUp := s.claim(t, "key")
	var receipt *runs.CreateResult
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if receipt, err = r.Create(t.Context(), s.order("key", 1, 1, 1)); err != nil {
			t.Error(err)
		}
	})
	s.waiting(t, "transactionid")
	giveUp()
	wg.Wait()
	if receipt == nil || receipt.Replayed {
		t.Errorf("got %v, want a run of its own", receipt)
	}
	s.wantRuns(t, 1)
}

// TestTwinAlone: an order that waits for its twin's end holds up nobody, not even if it had a statement for itself.
func TestTwinAlone(t *testing.T) {
	t.Parallel()
	for name, repetitions := range map[string]int64{"small": 1, "large": 5001} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			r := s.process(t, "&lock_timeout=0&statement_timeout=0", always)
			giveUp := s.claim(t, "key")
			var wg sync.WaitGroup
			for range 5 { // more than may wait at the same time
				wg.Go(func() {
					if _, err := r.Create(t.Context(), s.order("key", 1, 1, repetitions)); err != nil {
						t.Error(err)
					}
				})
			}
			s.waiting(t, "transactionid")
			for i := range 5 {
				create(t, r, s.order(fmt.Sprint(i), 1, 1, repetitions))
			}
			giveUp()
			wg.Wait()
			s.wantRuns(t, 6)
		})
	}
}

// TestLeavingBeforeTheTrip: an order that its caller gave up on before it was on its way is not written later.
func TestLeavingBeforeTheTrip(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "&lock_timeout=0&statement_timeout=0", always)
	release := s.holdAccount(t)
	done := make(chan error)
	go func() {
		_, err := r.Create(t.Context(), s.order("first", 1, 1, 1))
		done <- err
	}()
	s.waiting(t, "advisory")
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := r.Create(ctx, s.order("second", 1, 1, 1))
		gone <- err
	}()
	for r.Stats().Small.Waiting == 0 {
		runtime.Gosched()
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	release()
	must(t, <-done)
	create(t, r, s.order("third", 1, 1, 1))
	s.wantRuns(t, 2)
}

// TestTwinsNeighbours: orders that share a statement with one that waits for its twin are written while it waits, because
// a statement of several orders waits a moment only (no setting of the session would end its wait here), and then they go
// apart. The one waits on alone, as long as the session lets it.
func TestTwinsNeighbours(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings string
		giveUp         bool  // whether the twin does, when all the others are written
		want           error // of the one
		runs           int
	}{
		{"the twin gives up", "&lock_timeout=0&statement_timeout=0", true, nil, 20},
		{"the twin never ends", "&lock_timeout=2s", false, runs.ErrKeyInUse, 19},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			giveUp := s.claim(t, "5")
			var orders []*runs.CreateRequest
			for i := range 20 {
				orders = append(orders, s.order(fmt.Sprint(i), 1, 1, 1))
			}
			answers := s.crowd(t, s.process(t, test.settings, always), orders)
			for i, a := range answers {
				if i == 5 {
					continue
				}
				if <-a.done; a.err != nil || a.receipt.Replayed {
					t.Errorf("neighbour %d: got %v, %v", i, a.receipt, a.err)
				}
			}
			one := answers[5]
			if test.giveUp {
				s.waiting(t, "transactionid")
				select {
				case <-one.done:
					t.Errorf("who waits for its twin came back: %v, %v", one.receipt, one.err)
				default:
				}
				giveUp()
			}
			<-one.done
			if !errors.Is(one.err, test.want) || test.want == nil && one.receipt.Replayed {
				t.Errorf("who waits for its twin: got %v, %v, want %v", one.receipt, one.err, test.want)
			}
			s.wantRuns(t, test.runs)
		})
	}
}

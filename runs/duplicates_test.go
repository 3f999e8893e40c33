package runs_test

import (
	"errors"
	"fmt"
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
	duplicate := goCreate(t.Context(), patient, s.request("duplicate", 1, 1, 1))
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
	other := create(t, impatient, s.requestOf(s.customer(t), "duplicate", 1, 1, 1))
	equal(t, false, other.Replayed, "the same key of another account is replayed")
	release()
	first, err := duplicate.wait()
	must(t, err)
	replays(t, impatient, s.request("duplicate", 1, 1, 1), first)
	create(t, impatient, s.request("other", 1, 1, 1))
	s.wantRuns(t, 3)
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
			var waiting []*outcome
			for range 5 { // more than may be retried at a time
				waiting = append(waiting, goCreate(t.Context(), r, s.request("key", 1, 1, repetitions)))
			}
			s.waiting(t, "transactionid")
			for i := range 2 {
				create(t, r, s.request(fmt.Sprint(i), 1, 1, repetitions))
			}
			giveUp()
			for _, w := range waiting {
				// A cluster gives up on locks sooner.
				if _, err := w.wait(); !storetest.OnCitus() || !errors.Is(err, runs.ErrKeyInUse) {
					must(t, err)
				}
			}
			create(t, r, s.request("key", 1, 1, repetitions))
			s.wantRuns(t, 3)
		})
	}
}

// TestBatchWithADuplicate: requests in one batch with a request that waits for a duplicate are written while it waits.
// The batch waits briefly for a key, whatever the session's settings; then its requests are retried individually, and
// the one waits as long as the session's settings allow. Runs of an account with a quota wait together, and are written
// when it has given up.
func TestBatchWithADuplicate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings string
		quota          *int64
		giveUp         bool  // the duplicate rolls back when all others are written
		want           error // of the waiting request
		runs           int
	}{
		{"the duplicate rolls back", "&lock_timeout=0&statement_timeout=0", nil, true, nil, 20},
		{"the duplicate never ends", "&lock_timeout=2s", nil, false, runs.ErrKeyInUse, 19},
		{"the duplicate of an account with a quota never ends", "&lock_timeout=2s", new(int64(20)), false, runs.ErrKeyInUse, 19},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.meter(test.quota, nil)
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

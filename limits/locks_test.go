package limits

import (
	"errors"
	"sync"
	"testing"

	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"
)

// lockRows locks all counts of a key from another session, until the function that it returns is called.
func (s *site) lockRows(t *testing.T, k key) (unlock func()) {
	t.Helper()
	// The counts of the next minutes exist already, so that the lock lasts beyond the end of this one.
	tx := storetest.Begin(t, s.pool, `
		INSERT INTO api_rate_limit_buckets
		SELECT $1, $2, date_bin('1 minute', clock_timestamp(), 'epoch') + make_interval(mins => m), 0, 0, 0 FROM generate_series(0, 2) m
		ON CONFLICT (account_id, credential_id, window_start) DO UPDATE SET granted = 0`, s.account, k.id)
	return func() { must(t, tx.Rollback(t.Context())) }
}

// TestLockedRow: while another session has locked one credential's row, the other credentials are served, through
// several processes, and the locked one when the lock ends.
func TestLockedRow(t *testing.T) {
	s := newSite(t)
	processes := []*Limiter{s.process(t), s.process(t)}
	locked := s.key(t, 1000)
	admitted(t, processes[0], locked)
	var others []key
	for i := range 20 {
		others = append(others, s.key(t, 1_000_000))
		admitted(t, processes[i%2], others[i])
	}
	unlock := s.lockRows(t, locked)
	var waiting sync.WaitGroup
	for i := range 20 {
		waiting.Go(func() {
			a, err := processes[i%2].Admit(t.Context(), locked.Hash, nil)
			if storetest.OnCitus() && store.IsLockTimeout(err) {
				return // a cluster gives up on locks sooner
			}
			if err != nil || !a.Admitted {
				t.Errorf("the locked credential: got %+v, %v", a, err)
			}
		})
	}
	// The lock ends only after the others were served.
	storetest.AtOnce(10*len(others), func(i int) {
		if a, err := processes[i%2].Admit(t.Context(), others[i%20].Hash, nil); err != nil || !a.Admitted {
			t.Errorf("another credential: got %+v, %v", a, err)
		}
	})
	storetest.Eventually(t, "a batch has met the lock", func() bool {
		return processes[0].Stats().Counts.Failed+processes[1].Stats().Counts.Failed > 0
	})
	unlock()
	waiting.Wait()
	admitted(t, processes[0], locked, "the credential after the lock")
}

// TestWaitingPerCredential: a credential whose requests wait cannot take all places in the queue.
func TestWaitingPerCredential(t *testing.T) {
	s := newSite(t)
	locked, other := s.key(t, 1000), s.key(t, 0)
	const most = 40
	l := newLimiter(t, Config{Pool: open(t, s.url), MaxWaiting: most})
	admitted(t, l, locked)
	admitted(t, l, other)
	unlock := s.lockRows(t, locked)
	ended := make(chan error, 2*most)
	for range 2 * most {
		go func() { ended <- ignore(l.Admit(t.Context(), locked.Hash, nil)) }()
	}
	admitted(t, l, other, "another credential")
	for range most { // a quarter of so many may wait
		if err := <-ended; !errors.Is(err, batch.ErrOverloaded) {
			t.Errorf("got %v", err)
		}
	}
	unlock()
	for range most {
		if err := <-ended; !errors.Is(err, batch.ErrOverloaded) {
			must(t, err)
		}
	}
}

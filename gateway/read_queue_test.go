package gateway

import (
	"context"
	"testing"

	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"
)

// TestReadsThatWaitAreBounded: an account cannot take all places in the queue, and a read whose request has ended
// leaves it.
func TestReadsThatWaitAreBounded(t *testing.T) {
	q := newReadQueue(1, 12) // 3 for an account
	release, err := q.acquire(t.Context(), store.ID{1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 4)
	for account, requests := range map[byte]int{1: 3, 2: 1} {
		for range requests {
			go func() {
				_, err := q.acquire(ctx, store.ID{account})
				results <- err
			}()
		}
	}
	storetest.Eventually(t, "four reads wait", func() bool {
		q.waiting.mu.Lock()
		defer q.waiting.mu.Unlock()
		return q.waiting.taken == 4
	})
	if _, err := q.acquire(t.Context(), store.ID{1}); err != batch.ErrOverloaded {
		t.Errorf("the fourth read of an account that waits gets %v", err)
	}
	cancel()
	for range 4 {
		if err := <-results; err != batch.ErrOverloaded {
			t.Errorf("a read whose request has ended gets %v", err)
		}
	}
	release()
	if release, err := q.acquire(t.Context(), store.ID{1}); err != nil || q.waiting.taken != 0 {
		t.Errorf("afterwards a read gets %v, and %d wait", err, q.waiting.taken)
	} else {
		release()
	}
}

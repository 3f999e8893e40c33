package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store"
	"aiv/store/batch"
)

// TestReadsThatWaitAreBounded: an account cannot take all places in the queue. A read leaves it when it is served, when
// its request has ended, and when it has waited for too long.
func TestReadsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newReadQueue(1, 12) // 3 for an account
		release, err := q.acquire(t.Context(), store.ID{1})
		if err != nil {
			t.Fatal(err)
		}
		ends := make(chan error, 5)
		wait := func(ctx context.Context, account byte) {
			go func() {
				release, err := q.acquire(ctx, store.ID{account})
				if err == nil {
					release()
				}
				ends <- err
			}()
			synctest.Wait()
		}
		ended := func(what string, reads int, want error) {
			t.Helper()
			synctest.Wait()
			if len(ends) != reads {
				t.Fatalf("%s: %d reads have ended, want %d", what, len(ends), reads)
			}
			for range reads {
				if err := <-ends; err != want {
					t.Errorf("%s: got %v, want %v", what, err, want)
				}
			}
		}
		leaving, leave := context.WithCancel(t.Context())
		wait(leaving, 1)
		wait(t.Context(), 1)
		wait(t.Context(), 1)
		wait(t.Context(), 1)
		ended("the fourth read of an account that waits", 1, batch.ErrOverloaded)
		wait(t.Context(), 2)
		leave()
		ended("the request has ended", 1, batch.ErrOverloaded)
		release()
		ended("reads of two accounts", 3, nil)

		release, err = q.acquire(t.Context(), store.ID{1})
		wait(t.Context(), 1)
		time.Sleep(maxReadWait)
		ended("too long", 1, batch.ErrOverloaded)
		if release(); err != nil || q.waiting.taken != 0 {
			t.Errorf("afterwards a read gets %v, and %d wait", err, q.waiting.taken)
		}
	})
}

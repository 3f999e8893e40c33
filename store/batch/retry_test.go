package batch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

// TestRetries: which inputs of a failed batch fail, and how often the database is asked.
func TestRetries(t *testing.T) {
	withoutKeys := func(c *config) { c.Key, c.Retry = nil, nil }
	withoutRetry := func(c *config) { c.Retry = nil }
	for _, test := range []struct {
		name             string
		change           func(*config)
		err              error // of the rejected inputs
		in               []int
		rejected, failed []int
		flushes          int
	}{
		{"only the culprits fail", nil, errCulprit, numbers(1, 7), []int{3, 6}, []int{3, 6}, 1 + 1 + 7},
		{"without keys and Retry", withoutKeys, errCulprit, numbers(1, 7), []int{3, 6}, []int{3, 6}, 1 + 1 + 7},
		{"what may have taken effect is not flushed twice", nil, errAway, numbers(1, 3), []int{3}, numbers(1, 3), 1 + 1},
		{"one input with Retry, which may do better than Flush", nil, errCulprit, []int{1}, []int{1}, []int{1}, 1 + 2},
		{"one input without Retry", withoutRetry, errCulprit, []int{1}, []int{1}, []int{1}, 1 + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDatabase(test.change, test.rejected...)
			d.err = test.err
			d.together(t, test.in...)
			d.failed(t, test.err, test.failed...)
			d.succeeded(t, slices.DeleteFunc(test.in, func(v int) bool { return slices.Contains(test.failed, v) })...)
			equal(t, test.flushes, len(d.flushes)+len(d.retries), test.name, ": flushes")
		})
	}
}

// TestLockedKey: a locked key delays its own inputs only. They share one retry, however many they are and however many
// batches they would have been in, and return to the queue when the key is unlocked.
func TestLockedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(nil)
		d.lock(7)
		d.together(t, 1, 7, 107, 2, 3)
		d.succeeded(t, 1, 2, 3)
		waiting := []int{207, 307, 407, 507, 607, 707, 807, 907}
		for _, v := range waiting {
			d.send(t.Context(), v, v+1)
			d.succeeded(t, v+1)
		}
		if s := d.Stats(); s.Failed != 1 || s.Retried != 1 || s.Waiting != len(waiting) {
			t.Errorf("%d batches failed, %d were retried and %d wait for the retry", s.Failed, s.Retried, s.Waiting)
		}
		isLocked := func(in []int) bool { return in[0] == 7 }
		equal(t, []int{7, 107}, d.retries[slices.IndexFunc(d.retries, isLocked)], "the retry of the locked key")
		d.abandon(t, 1007)
		close(d.locked[7])
		d.succeeded(t, append(waiting, 7, 107)...)
		equal(t, waiting, d.flushes[len(d.flushes)-1], "what waited for the retry")
		equal(t, 0, d.Stats().Waiting, "wait at the end")
	})
}

// TestRetriesOfAKeyGoOn: what waits for a retry that fails is retried next.
func TestRetriesOfAKeyGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(nil, 7, 107)
		d.lock(7)
		d.send(t.Context(), 7, 107, 207)
		close(d.locked[7])
		d.failed(t, errCulprit, 7, 107, 207) // 207 shares a retry with 107
		equal(t, [][]int{{7}, {107, 207}}, d.retries, "retries")
		equal(t, [][]int{{7}}, d.flushes, "the only flush") // 107 and 207 did not return to the queue
		d.send(t.Context(), 307)
		d.succeeded(t, 307)
	})
}

// TestRetriesAreBounded: a failed batch of many keys does not take all connections, and later batches do not wait for
// it. Inputs that wait for one of the few retries fail after the timeout, and those that are abandoned are not flushed.
func TestRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 5 * time.Second
		d := newDatabase(func(c *config) {
			c.Timeout = timeout
			c.Retry = func(ctx context.Context, _ []int) ([]int, error) {
				<-ctx.Done()
				return nil, errAway
			}
		})
		d.lock(numbers(1, 21)...)
		start := time.Now()
		d.together(t, numbers(1, 20)...)
		d.send(t.Context(), 99)
		d.succeeded(t, 99)
		d.abandon(t, 21)
		retried, late := 0, 0
		for _, v := range numbers(1, 20) {
			switch got := <-d.results[v]; {
			case errors.Is(got.err, errAway):
				retried++
			case errors.Is(got.err, context.DeadlineExceeded):
				late++
			}
		}
		equal(t, timeout, time.Since(start), "time until the last input failed")
		equal(t, []int{batch.MaxRetries, 20 - batch.MaxRetries}, []int{retried, late}, "inputs that were retried, and late ones")
		synctest.Wait()
		equal(t, 0, d.Stats().Waiting, "wait at the end")
	})
}

// TestMaxPerKey: at most MaxWaiting inputs wait, beside those in flight. The inputs of one key cannot take all these
// places, be it in the queue or for a retry.
func TestMaxPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(func(c *config) { c.MaxWaiting, c.MaxPerKey = 4, 2 })
		d.lock(7)
		d.send(t.Context(), 0, 1)
		_, sameKey := d.TryStart(t.Context(), 101) // half of the places of the key are taken
		tried, otherKey := d.TryStart(t.Context(), 2)
		tried.Abandon()
		equal(t, []any{false, true, uint64(0), 1}, []any{sameKey, otherKey, d.Stats().Overloaded, d.Stats().Waiting})
		d.send(t.Context(), 101, 2, 201)
		d.failed(t, batch.ErrOverloaded, 201) // beyond MaxPerKey
		d.send(t.Context(), 7, 3)
		d.failed(t, batch.ErrOverloaded, 3) // beyond MaxWaiting
		close(d.held[0])
		d.succeeded(t, 0, 1, 101, 2)

		ctx, cancel := context.WithCancel(t.Context())
		d.send(ctx, 107)
		d.send(t.Context(), 207, 307)
		d.failed(t, batch.ErrOverloaded, 307) // beyond MaxPerKey for a retry
		cancel()
		d.failed(t, context.Canceled, 107)
		d.send(t.Context(), 407)
		close(d.locked[7])
		d.succeeded(t, 7, 207, 407)
		if s := d.Stats(); s.Waiting != 0 || s.Overloaded != 3 {
			t.Errorf("%d wait and %d were refused, want 0 and 3", s.Waiting, s.Overloaded)
		}
	})
}

// TestFaultyFlushes: a flush that panics, or returns too few results, fails its callers, not the process, and nothing
// after it.
func TestFaultyFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batch.New(config{Flush: func(_ context.Context, in []int) ([]int, error) {
			switch in[0] {
			case 1:
				panic("out of range")
			case 2:
				return nil, nil
			}
			return tenfold(in), nil
		}, Timeout: time.Hour, MaxWaiting: 1, MaxWeight: 1})
		_, err := b.Do(t.Context(), 1)
		if err == nil || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "retry_test.go") {
			t.Errorf("got %v, want the panic's value and stack", err)
		}
		if got, err := b.Do(t.Context(), 2); err == nil {
			t.Errorf("without its result: got %d", got)
		}
		if got, err := b.Do(t.Context(), 3); err != nil || got != 30 {
			t.Errorf("after the faults: got %d, %v", got, err)
		}
	})
}

package batch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

// TestAbandonedInputsAreFlushed: without DropAbandoned a caller's context ends its waiting, not its input.
func TestAbandonedInputsAreFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper(nil)
		k.abandon(t, 1)
		k.abandon(t, 2)
		k.send(t.Context(), 3)
		k.flushes(t, 1)
		k.flushes(t, 2, 3)
		k.succeeded(t, 3)
	})
}

// TestDropAbandoned: inputs whose callers gave up before their batch started are not flushed; the others get their
// results.
func TestDropAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper(func(c *config) { c.MaxWaiting, c.MaxWeight, c.DropAbandoned = 6, 6, true })
		ctx, cancel := context.WithCancel(t.Context())
		k.send(ctx, 1, 2)
		k.send(t.Context(), 3)
		k.send(ctx, 4, 5)
		k.send(t.Context(), 6)
		k.send(ctx, 7)
		k.send(t.Context(), 8)
		k.failed(t, batch.ErrOverloaded, 8) // beyond MaxWaiting
		cancel()
		k.failed(t, context.Canceled, 1, 2, 4, 5, 7)
		equal(t, 2, k.Stats().Waiting, "wait")
		k.send(t.Context(), 9) // below the bound again
		k.flushes(t, 1)        // was in flight
		k.flushes(t, 3, 6, 9)
		k.succeeded(t, 3, 6, 9)

		k.send(t.Context(), 10)
		k.abandon(t, 11)
		k.flushes(t, 10)
		synctest.Wait() // a batch without inputs is not flushed
		want := batch.Stats{Inputs: 1 + 3 + 1, Overloaded: 1}
		want.Sizes[0], want.Sizes[2] = 2, 1
		equal(t, want, k.Stats(), "statistics")
	})
}

// TestAbandonedInFlight: an input that was abandoned while its batch was in flight is not retried when that fails.
func TestAbandonedInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var retried [][]int
		k := newStepper(func(c *config) {
			c.RetryIndividually, c.DropAbandoned = isCulprit, true
			c.Retry = func(_ context.Context, in []int) ([]int, error) {
				mu.Lock()
				defer mu.Unlock()
				retried = append(retried, slices.Clone(in))
				return tenfold(in), nil
			}
		})
		k.abandon(t, 1)
		equal(t, []int{1}, <-k.started, "the first batch")
		k.abandon(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		k.send(t.Context(), 3, 4)
		k.send(ctx, 5)
		k.end <- errCulprit
		equal(t, []int{3, 4, 5}, <-k.started, "the second batch")
		cancel()
		k.failed(t, context.Canceled, 5)
		k.end <- errCulprit
		k.succeeded(t, 3, 4)
		slices.SortFunc(retried, slices.Compare)
		equal(t, [][]int{{3}, {4}}, retried, "retries")
		equal(t, 0, k.Stats().Waiting, "wait at the end")
	})
}

// TestDropLate: with DropAbandoned, an input whose caller's deadline has passed is not flushed, even if the caller has
// not noticed yet, as after the process was stopped.
func TestDropLate(t *testing.T) {
	for drop, flushed := range map[bool][]int{true: {3}, false: {2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			k := newStepper(func(c *config) { c.DropAbandoned = drop })
			ctx, cancel := context.WithCancel(t.Context())
			k.send(t.Context(), 1)
			k.send(unnoticed{ctx}, 2)
			k.send(t.Context(), 3)
			k.flushes(t, 1)
			k.flushes(t, flushed...)
			k.succeeded(t, append(flushed, 1)...)
			cancel()
			if drop {
				k.failed(t, context.Canceled, 2)
			}
			equal(t, 0, k.Stats().Waiting, "wait at the end")
		})
	}
}

// unnoticed is a context whose deadline has passed, although it is not done.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// TestLateResult: a result that exists when its caller's context ends is returned.
func TestLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCallers(answer, nil)
		for range 100 { // a select chooses one of several channels that are ready at random
			if got, err := b.Do(lateContext{t.Context()}, 1); got != 10 || err != nil {
				t.Fatalf("got %d, %v, want 10", got, err)
			}
		}
	})
}

// A lateContext ends as soon as a caller waits for that, but after all that other goroutines can do.
type lateContext struct{ context.Context }

func (lateContext) Done() <-chan struct{} {
	synctest.Wait()
	done := make(chan struct{})
	close(done)
	return done
}

func (lateContext) Err() error { return context.Canceled }

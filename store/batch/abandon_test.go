package batch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

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

// TestDropLate: with DropAbandoned, an input whose caller's deadline has passed is not flushed, even if the caller has
// not noticed yet, as after the process was stopped. Without it, a caller's context ends its waiting, not its input.
func TestDropLate(t *testing.T) {
	for drop, flushed := range map[bool][]int{true: {4}, false: {2, 3, 4}} {
		synctest.Test(t, func(t *testing.T) {
			k := newStepper(func(c *config) { c.DropAbandoned = drop })
			ctx, cancel := context.WithCancel(t.Context())
			k.send(t.Context(), 1)
			k.abandon(t, 2)
			k.send(unnoticed{ctx}, 3)
			k.send(t.Context(), 4)
			k.flushes(t, 1)
			k.flushes(t, flushed...)
			k.succeeded(t, 4)
			cancel()
			synctest.Wait()
			equal(t, 0, k.Stats().Waiting, "wait at the end")
		})
	}
}

// unnoticed is a context whose deadline has passed, although it is not done.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

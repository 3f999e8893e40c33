package batch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

// TestDropAbandoned: inputs whose callers gave up before their batch started are not flushed; the others get their
// results. A batch without inputs is not flushed.
func TestDropAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(func(c *config) { c.MaxWaiting, c.MaxWeight = 6, 6 })
		ctx, cancel := context.WithCancel(t.Context())
		d.send(t.Context(), 0)
		d.send(ctx, 1, 2)
		d.send(t.Context(), 3)
		d.send(ctx, 4, 5)
		d.send(t.Context(), 6, 7)
		d.failed(t, batch.ErrOverloaded, 7) // beyond MaxWaiting
		cancel()
		d.failed(t, context.Canceled, 1, 2, 4, 5)
		equal(t, 2, d.Stats().Waiting, "wait")
		d.send(t.Context(), 8) // below the bound again
		close(d.held[0])
		d.succeeded(t, 0, 3, 6, 8)
		want := batch.Stats{Inputs: 1 + 3, Overloaded: 1}
		want.Sizes[0], want.Sizes[2] = 1, 1
		equal(t, want, d.Stats(), "statistics")

		d = newDatabase(nil)
		d.send(t.Context(), 0)
		d.abandon(t, 1)
		close(d.held[0])
		d.succeeded(t, 0)
		equal(t, [][]int{{0}}, d.flushes, "flushes")
	})
}

// TestAbandonedInFlight: an input that was abandoned while its batch was in flight is not retried when that fails.
func TestAbandonedInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(nil, 2)
		d.held[1] = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		d.send(t.Context(), 0, 1)
		d.send(ctx, 2)
		close(d.held[0])
		synctest.Wait()
		cancel()
		d.failed(t, context.Canceled, 2)
		close(d.held[1])
		d.succeeded(t, 0, 1)
		equal(t, [][]int{{1}}, d.retries, "retries")
		equal(t, 0, d.Stats().Waiting, "wait at the end")
	})
}

// TestDropLate: with DropAbandoned, an input whose caller's deadline has passed is not flushed, even if the caller has
// not noticed yet, as after the process was stopped. Without it, a caller's context ends its waiting, not its input.
func TestDropLate(t *testing.T) {
	for drop, flushed := range map[bool][]int{true: {3}, false: {1, 2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			d := newDatabase(func(c *config) { c.DropAbandoned = drop })
			ctx, cancel := context.WithCancel(t.Context())
			d.send(t.Context(), 0)
			d.abandon(t, 1)
			d.send(unnoticed{ctx}, 2)
			d.send(t.Context(), 3)
			close(d.held[0])
			d.succeeded(t, 3)
			equal(t, [][]int{{0}, flushed}, d.flushes, "flushes")
			cancel()
			synctest.Wait()
			equal(t, 0, d.Stats().Waiting, "wait at the end")
		})
	}
}

// unnoticed is a context whose deadline has passed, although it is not done.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

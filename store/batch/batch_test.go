package batch_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
	"aiv/store/storetest"
)

// TestBatches: which batches the inputs form that are sent while another batch is in flight. Two thirds of a large batch
// are flushed, and the rest leads the next batch.
func TestBatches(t *testing.T) {
	asInput := func(in int) int { return in }
	for _, test := range []struct {
		name      string
		err       error // of the batch in flight
		maxWeight int
		weight    func(int) int
		in        []int
		want      [][]int
	}{
		{"all fit into one batch", nil, 10, asInput, []int{2, 3, 5}, [][]int{{2, 3, 5}}},
		{"a new batch where MaxWeight would be exceeded", nil, 10, asInput, []int{4, 6, 1, 9, 8}, [][]int{{4, 6}, {1, 9}, {8}}},
		{"an input heavier than MaxWeight is flushed alone", nil, 10, asInput, []int{3, 70, 4, 5}, [][]int{{3}, {70}, {4, 5}}},
		{"inputs keep their order", nil, 10, asInput, []int{8, 7, 1}, [][]int{{8}, {7, 1}}},
		{"without Weight", nil, 2, nil, []int{70, 80, 90}, [][]int{{70, 80}, {90}}},
		{"without MaxWeight", nil, 0, nil, []int{7, 8}, [][]int{{7}, {8}}},
		{"not large", nil, 200, nil, numbers(1, 32), [][]int{numbers(1, 32)}},
		{"large by one", nil, 200, nil, numbers(1, 33), [][]int{numbers(1, 32), {33}}},
		{"no input is delayed twice", nil, 200, nil, numbers(1, 150), [][]int{numbers(1, 100), numbers(101, 150)}},
		{"large, after a failure", errAway, 200, nil, numbers(1, 60), [][]int{numbers(1, 60)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDatabase(func(c *config) { c.MaxWaiting, c.MaxWeight, c.Weight = 300, test.maxWeight, test.weight })
			if test.err != nil {
				d.rejects, d.err = []int{0}, test.err
			}
			d.together(t, test.in...)
			equal(t, test.want, d.flushes[1:], test.name)
			d.send(t.Context(), 1000) // the idle batcher starts again
			d.succeeded(t, append(test.in, 1000)...)
			equal(t, 0, d.Stats().Waiting, test.name, ": wait at the end")
		})
	}
}

// TestRestOfALargeBatch: later inputs fill the batch that the rest of a large batch leads.
func TestRestOfALargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(func(c *config) { c.MaxWaiting, c.MaxWeight = 300, 60 })
		d.held[1] = make(chan struct{})
		d.together(t, numbers(1, 60)...)
		d.send(t.Context(), numbers(61, 120)...)
		close(d.held[1])
		d.succeeded(t, numbers(1, 120)...)
		equal(t, [][]int{{0}, numbers(1, 40), numbers(41, 100), numbers(101, 120)}, d.flushes, "batches")
	})
}

// TestUnderLoad runs many callers without a fixed order: one batch is in flight at a time, and each caller gets the
// result of its own input, or its own error, unless it gives up.
func TestUnderLoad(t *testing.T) {
	const callers = 2000
	rejected := func(in int) bool { return in%7 == 0 }
	work := func(_ context.Context, in []int) ([]int, error) {
		if slices.ContainsFunc(in, rejected) {
			return nil, errCulprit
		}
		return tenfold(in), nil
	}
	for _, maxWeight := range []int{50, callers} {
		var inFlight, batches atomic.Int32
		b := batch.New(config{Flush: func(ctx context.Context, in []int) ([]int, error) {
			if inFlight.Add(1) != 1 {
				t.Error("two batches are in flight")
			}
			defer inFlight.Add(-1)
			batches.Add(1)
			return work(ctx, in)
		}, Retry: work, RetryIndividually: isCulprit, Timeout: time.Hour, MaxWaiting: callers, MaxWeight: maxWeight, DropAbandoned: true})
		storetest.AtOnce(callers, func(in int) {
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			if in%3 == 0 {
				go giveUp()
			}
			switch out, err := b.Do(ctx, in); {
			case err == context.Canceled && in%3 == 0:
			case rejected(in) && err != errCulprit, !rejected(in) && (err != nil || out != 10*in):
				t.Errorf("%d: got %d, %v", in, out, err)
			}
		})
		if n := batches.Load(); int(n) < callers/3/maxWeight || n > callers {
			t.Errorf("%d batches for %d callers", n, callers)
		}
		storetest.Eventually(t, "none waits", func() bool { return b.Stats().Waiting == 0 })
	}
}

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

package batch_test

import (
	"context"
	"slices"

	"sync/atomic"
	"testing"
	"testing/synctest"

	"aiv/store/storetest"
)

func TestConcurrentCallersShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper(nil)
		k.send(t.Context(), 1)
		equal(t, []int{1}, <-k.started, "the first batch starts at once")
		k.send(t.Context(), 2, 3, 4, 5)
		k.end <- nil
		k.succeeded(t, 1)
		k.flushes(t, 2, 3, 4, 5) // in order
		k.succeeded(t, 2, 3, 4, 5)
		k.send(t.Context(), 6) // the idle batcher starts again
		k.flushes(t, 6)
		k.succeeded(t, 6)
	})
}

func TestMaxWeight(t *testing.T) {
	asInput := func(in int) int { return in }
	for _, test := range []struct {
		name      string
		maxWeight int
		weight    func(int) int
		in        []int
		want      [][]int
	}{
		{"all fit into one batch", 10, asInput, []int{2, 3, 5}, [][]int{{2, 3, 5}}},
		{"a new batch where MaxWeight would be exceeded", 10, asInput, []int{4, 6, 1, 9, 9}, [][]int{{4, 6}, {1, 9}, {9}}},
		{"an input heavier than MaxWeight is flushed alone", 10, asInput, []int{3, 70, 3, 3}, [][]int{{3}, {70}, {3, 3}}},
		{"inputs keep their order", 10, asInput, []int{8, 8, 1}, [][]int{{8}, {8, 1}}},
		{"without Weight", 2, nil, []int{70, 80, 90}, [][]int{{70, 80}, {90}}},
		{"without MaxWeight", 0, nil, []int{7, 8}, [][]int{{7}, {8}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newStepper(func(c *config) { c.MaxWeight, c.Weight = test.maxWeight, test.weight })
				k.send(t.Context(), 0)
				k.send(t.Context(), test.in...)
				k.flushes(t, 0)
				for _, want := range test.want {
					k.flushes(t, want...)
				}
			})
		})
	}
}

// TestLargeBatchesAreSplit: two thirds of a large batch are flushed, and the rest leads the next batch.
func TestLargeBatchesAreSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper(func(c *config) { c.MaxWaiting, c.MaxWeight, c.DropAbandoned = 300, 200, true })
		// large makes a batch of inputs while another batch is in flight, which ends with an error.
		large := func(end error, in ...int) {
			k.send(t.Context(), 0)
			<-k.started
			k.send(t.Context(), in...)
			k.end <- end
			synctest.Wait() // until the next batch has started
		}
		flushes := func(want ...int) {
			t.Helper()
			k.flushes(t, want...)
			k.succeeded(t, want...)
		}
		large(nil, numbers(1, 32)...)
		flushes(numbers(1, 32)...) // not large
		large(nil, numbers(1, 33)...)
		flushes(numbers(1, 32)...) // large by one
		flushes(33)
		large(nil, numbers(101, 250)...)
		flushes(numbers(101, 200)...)
		flushes(numbers(201, 250)...) // though large: no input is delayed twice
		large(errAway, numbers(101, 160)...)
		flushes(numbers(101, 160)...) // all after a failure
		equal(t, 0, k.Stats().Waiting, "wait at the end")
	})
}

// TestUnderLoad runs many callers without a fixed order: one batch is in flight at a time, and each caller gets the
// result of its own input, or its own error, unless it gives up.
func TestUnderLoad(t *testing.T) {
	const callers = 2000
	rejected := func(in int) bool { return in%7 == 0 }
	for _, maxWeight := range []int{50, callers} {
		var inFlight, batches atomic.Int32
		work := func(ctx context.Context, in []int) ([]int, error) {
			if slices.ContainsFunc(in, rejected) {
				return nil, errCulprit
			}
			return answer(ctx, in)
		}
		b := newCallers(func(ctx context.Context, in []int) ([]int, error) {
			if inFlight.Add(1) != 1 {
				t.Error("two batches are in flight")
			}
			defer inFlight.Add(-1)
			batches.Add(1)
			return work(ctx, in)
		}, func(c *config) {
			c.MaxWaiting, c.MaxWeight, c.DropAbandoned, c.RetryIndividually, c.Retry = callers, maxWeight, true, isCulprit, work
		})
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

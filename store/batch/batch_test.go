package batch_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
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
		leaving, cancel := context.WithCancel(t.Context())
		add := func(in ...int) {
			for _, v := range in {
				ctx := t.Context()
				if v == 50 || v == 55 || v == 450 { // 450 is abandoned at once
					ctx = leaving
				}
				k.send(ctx, v)
			}
		}
		// large makes a batch of inputs while another batch is in flight, which ends with an error.
		large := func(end error, from, to int) {
			k.send(t.Context(), 0)
			<-k.started
			add(numbers(from, to)...)
			k.end <- end
			synctest.Wait() // until the next batch has started
		}
		flushes := func(want ...int) {
			t.Helper()
			k.flushes(t, want...)
			k.succeeded(t, want...)
		}
		large(nil, 1, 60)
		add(61)
		equal(t, 21, k.Stats().Waiting, "wait")
		cancel()
		k.failed(t, context.Canceled, 50, 55)
		flushes(numbers(1, 40)...) // two thirds
		flushes(slices.Concat(numbers(41, 49), numbers(51, 54), numbers(56, 61))...)

		large(nil, 1, 32)
		flushes(numbers(1, 32)...) // not large
		large(nil, 1, 33)
		flushes(numbers(1, 32)...) // large by one
		flushes(33)

		large(nil, 101, 250)
		flushes(numbers(101, 200)...)
		flushes(numbers(201, 250)...) // though large: no input is delayed twice

		// Later inputs fill the batch of the rest, without its abandoned one, and then another one.
		large(nil, 401, 460)
		add(numbers(461, 650)...)
		flushes(numbers(401, 440)...)
		flushes(slices.Concat(numbers(441, 449), numbers(451, 641))...) // a full batch, before another one
		flushes(numbers(642, 650)...)

		large(errAway, 101, 160)
		flushes(numbers(101, 160)...) // all after a failure
		large(nil, 201, 260)
		flushes(numbers(201, 240)...)
		flushes(numbers(241, 260)...)
		equal(t, 0, k.Stats().Waiting, "wait at the end")
	})
}

// TestBatchesAreCounted: batches are counted by their sizes and times.
func TestBatchesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper(func(c *config) { c.Timeout, c.MaxWaiting, c.MaxWeight = time.Hour, 2000, 2000 })
		k.send(t.Context(), 0)
		for i, next := range []int{2, 3, 1025, 0} {
			<-k.started
			k.send(t.Context(), numbers(1, next)...)
			time.Sleep(time.Second)
			if i == 2 {
				k.end <- errAway // so that the next batch is not split
			} else {
				k.end <- nil
			}
		}
		synctest.Wait()
		want := batch.Stats{Inputs: 1 + 2 + 3 + 1025, Time: 4 * time.Second, Failed: 1}
		want.Sizes[0], want.Sizes[1], want.Sizes[2], want.Sizes[len(batch.Sizes)] = 1, 1, 1, 1
		equal(t, want, k.Stats())
	})
}

// TestRunnableCallersJoin: callers that are runnable when the first one calls join its batch.
func TestRunnableCallersJoin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 100 {
		var first atomic.Int32 // the size of the first batch
		b := newCallers(func(ctx context.Context, in []int) ([]int, error) {
			first.CompareAndSwap(0, int32(len(in)))
			return answer(ctx, in)
		}, nil)
		var wg sync.WaitGroup
		for in := range 8 {
			wg.Go(func() { b.Do(t.Context(), in) })
		}
		wg.Wait()
		if first.Load() == 8 {
			return
		}
	}
	t.Error("the first batch never had all eight inputs")
}

// TestUnderLoad runs many callers without a fixed order: one batch is in flight at a time, and each caller gets the
// result of its own input unless it gives up.
func TestUnderLoad(t *testing.T) {
	const callers = 2000
	for _, maxWeight := range []int{50, callers} {
		var inFlight, batches atomic.Int32
		b := newCallers(func(ctx context.Context, in []int) ([]int, error) {
			if inFlight.Add(1) != 1 {
				t.Error("two batches are in flight")
			}
			defer inFlight.Add(-1)
			batches.Add(1)
			return answer(ctx, in)
		}, func(c *config) { c.MaxWaiting, c.MaxWeight, c.DropAbandoned = callers, maxWeight, true })
		var wg sync.WaitGroup
		for in := range callers {
			ctx, giveUp := t.Context(), func() {}
			if in%3 == 0 {
				ctx, giveUp = context.WithCancel(ctx)
			}
			wg.Go(func() {
				if out, err := b.Do(ctx, in); (err != nil || out != 10*in) && (err != context.Canceled || in%3 != 0) {
					t.Errorf("%d: got %d, %v", in, out, err)
				}
			})
			wg.Go(giveUp)
		}
		wg.Wait()
		if n := batches.Load(); int(n) < callers/3/maxWeight || n > callers {
			t.Errorf("%d batches for %d callers", n, callers)
		}
		equal(t, 0, b.Stats().Waiting, "wait at the end")
	}
}

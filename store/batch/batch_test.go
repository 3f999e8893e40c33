package batch_test

import (
	"context"
	"errors"
	"fmt"
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
		k := newStepper()
		b := batch.New(batch.Config[int, int]{Flush: k.flush, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10})
		first := send(t.Context(), b, 1)
		equal(t, []int{1}, <-k.started, "the first batch starts at once")
		var rest []<-chan result
		for in := 2; in <= 5; in++ {
			rest = append(rest, send(t.Context(), b, in))
		}
		select {
		case in := <-k.started:
			t.Errorf("a second batch is in flight, with %v", in)
		default:
		}
		k.end <- nil
		equal(t, []int{2, 3, 4, 5}, <-k.started, "the second batch has the waiting inputs in order")
		expect(t, "the first", first, result{out: 10})
		k.end <- nil
		for i, got := range rest {
			expect(t, fmt.Sprintf("input %d", i+2), got, result{out: 10 * (i + 2)})
		}
		// The idle batcher starts again.
		again := send(t.Context(), b, 6)
		equal(t, []int{6}, <-k.started, "a batch after a pause")
		k.end <- nil
		expect(t, "after a pause", again, result{out: 60})
	})
}

func TestMaxWeight(t *testing.T) {
	for _, test := range []struct {
		name      string
		maxWeight int
		plain     bool // without Weight
		in        []int
		want      [][]int
	}{
		{"all fit into one batch", 10, false, []int{2, 3, 5}, [][]int{{2, 3, 5}}},
		{"a new batch starts where MaxWeight would be exceeded", 10, false, []int{4, 6, 1, 9, 9}, [][]int{{4, 6}, {1, 9}, {9}}},
		{"an input heavier than MaxWeight is flushed alone", 10, false, []int{3, 70, 3, 3}, [][]int{{3}, {70}, {3, 3}}},
		{"inputs keep their order", 10, false, []int{8, 8, 1}, [][]int{{8}, {8, 1}}},
		{"without Weight", 2, true, []int{70, 80, 90}, [][]int{{70, 80}, {90}}},
		{"without MaxWeight", 0, true, []int{7, 8}, [][]int{{7}, {8}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newStepper()
				cfg := batch.Config[int, int]{Flush: k.flush, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: test.maxWeight}
				if !test.plain {
					cfg.Weight = func(in int) int { return in }
				}
				b := batch.New(cfg)
				send(t.Context(), b, 0)
				<-k.started
				for _, in := range test.in {
					send(t.Context(), b, in)
				}
				var got [][]int
				for range test.want {
					k.end <- nil
					got = append(got, <-k.started)
				}
				k.end <- nil
				equal(t, test.want, got, "batches")
			})
		})
	}
}

// TestAbandonedInputsAreFlushed: without DropAbandoned a caller's context ends its waiting, not its input.
func TestAbandonedInputsAreFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper()
		b := batch.New(batch.Config[int, int]{Flush: k.flush, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10})
		ctx, cancel := context.WithCancel(t.Context())
		under := send(ctx, b, 1)
		<-k.started
		waiting, other := send(ctx, b, 2), send(t.Context(), b, 3)
		cancel()
		expect(t, "in flight", under, result{err: context.Canceled})
		expect(t, "waiting", waiting, result{err: context.Canceled})
		k.end <- nil
		equal(t, []int{2, 3}, <-k.started, "the second batch")
		k.end <- nil
		expect(t, "the other input", other, result{out: 30})
	})
}

func TestCallersTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batch.New(batch.Config[int, int]{
			Flush: func(ctx context.Context, in []int) ([]int, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Timeout: 3 * time.Second, MaxWaiting: 10, MaxWeight: 10,
		})
		start := time.Now()
		if _, err := b.Do(t.Context(), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		equal(t, 3*time.Second, time.Since(start), "time until the error")
	})
}

// TestLargeBatchesAreSplit: two thirds of a large batch are flushed, and the rest leads the next batch.
func TestLargeBatchesAreSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper()
		b := batch.New(batch.Config[int, int]{Flush: k.flush, Timeout: time.Minute, MaxWaiting: 300, MaxWeight: 200, DropAbandoned: true})
		leaving, cancel := context.WithCancel(t.Context())
		results := make(map[int]<-chan result)
		add := func(from, to int) {
			for in := from; in <= to; in++ {
				ctx := t.Context()
				if in == 50 || in == 55 || in == 450 { // 450 is abandoned at once
					ctx = leaving
				}
				results[in] = send(ctx, b, in)
			}
		}
		large := func(from, to int, end error) {
			results[0] = send(t.Context(), b, 0)
			<-k.started
			add(from, to)
			k.end <- end
			synctest.Wait() // until the next batch has started
		}
		flushes := func(what string, want []int, end error) {
			t.Helper()
			equal(t, want, <-k.started, what)
			k.end <- end
			for _, in := range want {
				if end == nil {
					expect(t, fmt.Sprintf("%s: input %d", what, in), results[in], result{out: 10 * in})
				} else {
					expect(t, fmt.Sprintf("%s: input %d", what, in), results[in], result{err: end})
				}
			}
		}
		large(1, 60, nil)
		add(61, 61)
		equal(t, 21, b.Stats().Waiting, "wait")
		cancel()
		for _, in := range []int{50, 55} {
			expect(t, fmt.Sprintf("input %d, which was abandoned", in), results[in], result{err: context.Canceled})
		}
		flushes("two thirds", numbers(1, 40), nil)
		flushes("the rest without two, and one more", slices.Concat(numbers(41, 49), numbers(51, 54), numbers(56, 61)), nil)

		large(1, 32, nil)
		flushes("not large", numbers(1, 32), nil)
		large(1, 33, nil)
		flushes("large by one", numbers(1, 32), nil)
		flushes("the one left", numbers(33, 33), nil)

		// No input is delayed twice.
		large(101, 250, nil)
		flushes("two thirds of 150", numbers(101, 200), nil)
		flushes("the rest, though large", numbers(201, 250), nil)

		// Later inputs fill the batch of the rest, without its abandoned one, and then another one.
		large(401, 460, nil)
		add(461, 650)
		flushes("two thirds, before many more", numbers(401, 440), nil)
		flushes("a full batch, before another one", slices.Concat(numbers(441, 449), numbers(451, 641)), nil)
		flushes("the last", numbers(642, 650), nil)

		// After a failure all inputs are flushed.
		failed := errors.New("failed")
		large(101, 160, failed)
		flushes("all after a failure", numbers(101, 160), failed)
		large(201, 260, nil)
		flushes("two thirds again", numbers(201, 240), nil)
		flushes("the rest again", numbers(241, 260), nil)
		equal(t, 0, b.Stats().Waiting, "wait at the end")
	})
}

// TestBatchesAreCounted: batches are counted by their sizes and times.
func TestBatchesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper()
		b := batch.New(batch.Config[int, int]{Flush: k.flush, Timeout: time.Hour, MaxWaiting: 2000, MaxWeight: 2000})
		failed := errors.New("failed")
		send(t.Context(), b, 0)
		for i, next := range []int{2, 3, 1025, 0} {
			<-k.started
			for in := range next {
				send(t.Context(), b, in)
			}
			time.Sleep(time.Second)
			if i == 2 {
				k.end <- failed // so that the next batch is not split
			} else {
				k.end <- nil
			}
		}
		synctest.Wait()
		want := batch.Stats{Inputs: 1 + 2 + 3 + 1025, Time: 4 * time.Second, Failed: 1}
		want.Sizes[0], want.Sizes[1], want.Sizes[2], want.Sizes[len(batch.Sizes)] = 1, 1, 1, 1
		equal(t, want, b.Stats())
	})
}

// TestRunnableCallersJoin: callers that are runnable when the first one calls join its batch.
func TestRunnableCallersJoin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 100 {
		var first atomic.Int32 // the size of the first batch
		b := batch.New(batch.Config[int, int]{
			Flush: func(_ context.Context, in []int) ([]int, error) {
				first.CompareAndSwap(0, int32(len(in)))
				return tenfold(in), nil
			},
			Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10,
		})
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
		b := batch.New(batch.Config[int, int]{
			Flush: func(_ context.Context, in []int) ([]int, error) {
				if inFlight.Add(1) != 1 {
					t.Error("two batches are in flight")
				}
				defer inFlight.Add(-1)
				batches.Add(1)
				return tenfold(in), nil
			},
			Timeout: time.Minute, MaxWaiting: callers, MaxWeight: maxWeight, DropAbandoned: true,
		})
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

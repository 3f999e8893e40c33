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

// TestDropAbandoned: inputs whose callers gave up before their batch started are not flushed; the others get their
// results.
func TestDropAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper()
		b := batch.New(batch.Config[int, int]{Flush: k.flush, Timeout: time.Minute, MaxWaiting: 6, MaxWeight: 6, DropAbandoned: true})
		ctx, cancel := context.WithCancel(t.Context())
		under := send(ctx, b, 1)
		<-k.started
		abandoned := []<-chan result{send(ctx, b, 2)}
		kept := map[int]<-chan result{3: send(t.Context(), b, 3)}
		abandoned = append(abandoned, send(ctx, b, 4), send(ctx, b, 5))
		kept[6] = send(t.Context(), b, 6)
		abandoned = append(abandoned, send(ctx, b, 7))
		expect(t, "beyond MaxWaiting", send(t.Context(), b, 8), result{err: batch.ErrOverloaded})
		cancel()
		expect(t, "in flight", under, result{err: context.Canceled})
		for _, results := range abandoned {
			expect(t, "abandoned", results, result{err: context.Canceled})
		}
		equal(t, 2, b.Stats().Waiting, "wait")
		kept[9] = send(t.Context(), b, 9) // below the bound again
		k.end <- nil
		equal(t, []int{3, 6, 9}, <-k.started, "the second batch")
		k.end <- nil
		for v, results := range kept {
			expect(t, "kept", results, result{out: 10 * v})
		}

		// A batch without inputs is not flushed.
		ctx, cancel = context.WithCancel(t.Context())
		send(t.Context(), b, 10)
		<-k.started
		send(ctx, b, 11)
		cancel()
		synctest.Wait()
		k.end <- nil
		synctest.Wait()
		if s := b.Stats(); s.Waiting != 0 || s.Inputs != 1+3+1 {
			t.Errorf("%d wait, %d were flushed", s.Waiting, s.Inputs)
		}
	})
}

// TestAbandonedInFlight: an input that was abandoned while its batch was in flight is not retried when that fails.
func TestAbandonedInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStepper()
		var mu sync.Mutex
		var retried [][]int
		b := batch.New(batch.Config[int, int]{
			Flush: k.flush, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10, RetryIndividually: isCulprit, DropAbandoned: true,
			Retry: func(_ context.Context, in []int) ([]int, error) {
				mu.Lock()
				defer mu.Unlock()
				retried = append(retried, slices.Clone(in))
				return tenfold(in), nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		abandoned, kept := send(ctx, b, 1), []<-chan result{}
		<-k.started
		before := send(ctx, b, 2)
		for in := 3; in <= 4; in++ {
			kept = append(kept, send(t.Context(), b, in))
		}
		later, cancelLater := context.WithCancel(t.Context())
		during := send(later, b, 5)
		cancel()
		expect(t, "abandoned in flight", abandoned, result{err: context.Canceled})
		expect(t, "abandoned while it waited", before, result{err: context.Canceled})
		k.end <- errCulprit
		equal(t, []int{3, 4, 5}, <-k.started, "the second batch")
		cancelLater()
		expect(t, "abandoned in the second batch", during, result{err: context.Canceled})
		k.end <- errCulprit
		for i, got := range kept {
			expect(t, "kept", got, result{out: 10 * (i + 3)})
		}
		slices.SortFunc(retried, slices.Compare)
		equal(t, [][]int{{3}, {4}}, retried, "retries")
		equal(t, 0, b.Stats().Waiting, "wait at the end")
	})
}

// TestDropLate: with DropAbandoned, an input whose caller's deadline has passed is not flushed, even if the caller has
// not noticed yet, as after the process was stopped.
func TestDropLate(t *testing.T) {
	for drop, want := range map[bool][]int{true: {3}, false: {2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			k := newStepper()
			b := batch.New(batch.Config[int, int]{Flush: k.flush, Timeout: time.Minute, MaxWaiting: 6, MaxWeight: 6, DropAbandoned: drop})
			first := send(t.Context(), b, 1)
			<-k.started
			ctx, cancel := context.WithCancel(t.Context())
			late, kept := send(unnoticed{ctx}, b, 2), send(t.Context(), b, 3)
			k.end <- nil
			expect(t, "in flight", first, result{out: 10})
			equal(t, want, <-k.started, "DropAbandoned ", drop, ": the second batch")
			k.end <- nil
			expect(t, "kept", kept, result{out: 30})
			cancel()
			if drop {
				expect(t, "late", late, result{err: context.Canceled})
			} else {
				expect(t, "late", late, result{out: 20})
			}
			equal(t, 0, b.Stats().Waiting, "wait at the end")
		})
	}
}

// unnoticed is a context whose deadline has passed, although it is not done.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// TestLateResult: a result that exists when its caller's context ends is returned.
func TestLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flush := func(_ context.Context, in []int) ([]int, error) { return tenfold(in), nil }
		b := batch.New(batch.Config[int, int]{Flush: flush, Timeout: time.Minute, MaxWaiting: 1, MaxWeight: 1})
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

package batch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

// TestOnlyTheCulpritFails: the other inputs of a failed batch are retried and succeed.
func TestOnlyTheCulpritFails(t *testing.T) {
	for _, keys := range []bool{true, false} {
		t.Run(fmt.Sprintf("keys=%v", keys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDatabase(3, 6)
				cfg := d.config()
				if !keys {
					cfg.Key, cfg.Retry = nil, nil
				}
				for v, got := range d.together(t, batch.New(cfg), 1, 2, 3, 4, 5, 6, 7) {
					want := result{out: 10 * v}
					if slices.Contains(d.rejects, v) {
						want = result{err: errCulprit}
					}
					expect(t, fmt.Sprint("input ", v), got, want)
				}
				equal(t, 1+1+7, len(d.flushes)+len(d.retries), "flushes")
			})
		})
	}
}

// TestOtherErrorsFailTheBatch: a batch that may have taken effect is not flushed twice.
func TestOtherErrorsFailTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(3)
		d.err = errAway
		for v, got := range d.together(t, d.batcher(), 1, 2, 3) {
			want := result{err: errAway}
			if v == 0 {
				want = result{}
			}
			expect(t, fmt.Sprint("input ", v), got, want)
		}
		equal(t, 2, len(d.flushes)+len(d.retries), "flushes")
	})
}

// TestSingleInput: a batch of one input is retried only where Retry may do better than Flush.
func TestSingleInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			retry bool
			want  int
		}{{false, 1}, {true, 2}} {
			d := newDatabase(1)
			cfg := d.config()
			if !test.retry {
				cfg.Retry = nil
			}
			expect(t, "the culprit", send(t.Context(), batch.New(cfg), 1), result{err: errCulprit})
			equal(t, test.want, len(d.flushes)+len(d.retries), "flushes")
		}
	})
}

// TestLockedKey: a locked key delays its own inputs only. They share one retry, however many they are and however many
// batches they would have been in, and return to the queue when the key is unlocked.
func TestLockedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.lock(7)
		b := d.batcher()
		got := d.together(t, b, 1, 7, 107, 2, 3)
		for _, v := range []int{1, 2, 3} {
			expect(t, "another key of the batch", got[v], result{out: 10 * v})
		}
		for v := 207; v <= 907; v += 100 {
			got[v] = send(t.Context(), b, v)
			expect(t, "another key", send(t.Context(), b, v+1), result{out: 10 * (v + 1)})
		}
		if s := b.Stats(); s.Failed != 1 || s.Retried != 1 {
			t.Errorf("%d batches failed and %d were retried, want 1 and 1", s.Failed, s.Retried)
		}
		equal(t, []int{7, 107}, d.retries[slices.IndexFunc(d.retries, func(in []int) bool { return in[0] == 7 })],
			"the retry of the locked key")
		equal(t, 8, b.Stats().Waiting, "wait for the retry")
		ctx, cancel := context.WithCancel(t.Context())
		abandoned := send(ctx, b, 1007)
		cancel()
		expect(t, "abandoned", abandoned, result{err: context.Canceled})
		close(d.locked[7])
		for v := 7; v <= 907; v += 100 {
			expect(t, "unlocked", got[v], result{out: 10 * v})
		}
		equal(t, []int{207, 307, 407, 507, 607, 707, 807, 907}, d.flushes[len(d.flushes)-1],
			"what waited for the retry")
		equal(t, 0, b.Stats().Waiting, "wait at the end")
	})
}

// TestRetriesOfAKeyGoOn: what waits for a retry that fails is retried next.
func TestRetriesOfAKeyGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(7, 107)
		d.lock(7)
		b := d.batcher()
		first := send(t.Context(), b, 7)
		second := send(t.Context(), b, 107)
		third := send(t.Context(), b, 207)
		close(d.locked[7])
		expect(t, "the first", first, result{err: errCulprit})
		expect(t, "the second, which shares the third's retry", second, result{err: errCulprit})
		expect(t, "the third", third, result{err: errCulprit})
		equal(t, [][]int{{7}, {107, 207}}, d.retries, "retries")
		expect(t, "a later input", send(t.Context(), b, 307), result{out: 3070})
	})
}

// TestRetriesAreBounded: a failed batch of many keys does not take all connections, and later batches do not wait for
// it. A retry whose input was abandoned before is not flushed.
func TestRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.lock(numbers(1, 21)...)
		b := d.batcher()
		got := d.together(t, b, numbers(1, 20)...)
		expect(t, "a later input", send(t.Context(), b, 99), result{out: 990})
		ctx, cancel := context.WithCancel(t.Context())
		abandoned := send(ctx, b, 21)
		cancel()
		expect(t, "abandoned", abandoned, result{err: context.Canceled})
		for v := 1; v <= 20; v++ {
			close(d.locked[v])
		}
		for v, r := range got {
			expect(t, "unlocked", r, result{out: 10 * v})
		}
		equal(t, batch.MaxRetries, d.most, "retries were in flight")
		equal(t, 20, len(d.retries), "retries")
	})
}

// TestRetriesDoNotWaitLong: while more keys are locked than may be retried at a time, the others fail after the
// timeout.
func TestRetriesDoNotWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.lock(numbers(1, 20)...)
		cfg := d.config()
		cfg.Timeout = 5 * time.Second
		cfg.Retry = func(ctx context.Context, _ []int) ([]int, error) {
			<-ctx.Done()
			return nil, errAway
		}
		start := time.Now()
		failed := map[error]int{}
		for v, r := range d.together(t, batch.New(cfg), numbers(1, 20)...) {
			if v == 0 {
				continue
			}
			got := <-r
			for _, err := range []error{errAway, context.DeadlineExceeded} {
				if errors.Is(got.err, err) {
					failed[err]++
				}
			}
		}
		if took := time.Since(start); took > cfg.Timeout {
			t.Errorf("the last input failed after %v, want %v", took, cfg.Timeout)
		}
		want := map[error]int{errAway: batch.MaxRetries, context.DeadlineExceeded: 20 - batch.MaxRetries}
		if !maps.Equal(failed, want) {
			t.Errorf("got %v, want %v", failed, want)
		}
	})
}

// TestMaxPerKey: at most MaxWaiting inputs wait, beside those in flight. The inputs of one key cannot take all these
// places, be it in the queue or for a retry.
func TestMaxPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.lock(7)
		cfg := d.config()
		cfg.MaxWaiting, cfg.MaxPerKey = 4, 2
		b := batch.New(cfg)
		got := map[int]<-chan result{0: send(t.Context(), b, 0)}
		for _, v := range []int{1, 101, 2} {
			got[v] = send(t.Context(), b, v)
		}
		expect(t, "beyond MaxPerKey", send(t.Context(), b, 201), result{err: batch.ErrOverloaded})
		got[7] = send(t.Context(), b, 7)
		expect(t, "beyond MaxWaiting", send(t.Context(), b, 3), result{err: batch.ErrOverloaded})
		close(d.begin)
		for _, v := range []int{0, 1, 101, 2} {
			expect(t, fmt.Sprint("input ", v), got[v], result{out: 10 * v})
		}

		ctx, cancel := context.WithCancel(t.Context())
		abandoned := send(ctx, b, 107)
		got[207] = send(t.Context(), b, 207)
		expect(t, "beyond MaxPerKey for a retry", send(t.Context(), b, 307), result{err: batch.ErrOverloaded})
		cancel()
		expect(t, "abandoned", abandoned, result{err: context.Canceled})
		got[407] = send(t.Context(), b, 407)
		close(d.locked[7])
		for _, v := range []int{7, 207, 407} {
			expect(t, "unlocked", got[v], result{out: 10 * v})
		}
		if s := b.Stats(); s.Waiting != 0 || s.Overloaded != 3 {
			t.Errorf("%d wait and %d were refused, want 0 and 3", s.Waiting, s.Overloaded)
		}
	})
}

// TestPartOf: the part is not 0, which would not bound it.
func TestPartOf(t *testing.T) {
	for maxWaiting, want := range map[int]int{1: 1, 4: 1, 5: 2, 8: 2} {
		equal(t, want, batch.PartOf(maxWaiting), "PartOf(", maxWaiting, ")")
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		b := batch.New(batch.Config[int, int]{
			Flush: func(_ context.Context, in []int) ([]int, error) {
				if calls++; calls == 1 {
					panic("out of range")
				}
				return tenfold(in), nil
			},
			Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10,
		})
		_, err := b.Do(t.Context(), 1)
		if err == nil || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "retry_test.go") {
			t.Errorf("got %v, want the panic's value and stack", err)
		}
		expect(t, "after a panic", send(t.Context(), b, 2), result{out: 20})
	})
}

// TestMissingResults: a flush that returns too few results fails its callers, not the process.
func TestMissingResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batch.New(batch.Config[int, int]{
			Flush:   func(_ context.Context, in []int) ([]int, error) { return tenfold(in)[1:], nil },
			Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10,
		})
		if got, err := b.Do(t.Context(), 1); err == nil {
			t.Errorf("got %d", got)
		}
	})
}

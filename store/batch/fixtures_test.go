package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"aiv/store/batch"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// Most tests of this package run in bubbles of package synctest: their clock is not the machine's, Wait returns when
// all goroutines are blocked, and a goroutine that a Batcher leaks fails the test.

type batcher = batch.Batcher[int, int]

// stepper flushes one batch at a time: it reports the inputs on started and returns what it receives from end.
type stepper struct {
	started chan []int
	end     chan error
}

func newStepper() *stepper { return &stepper{started: make(chan []int), end: make(chan error)} }

func (s *stepper) flush(_ context.Context, in []int) ([]int, error) {
	s.started <- slices.Clone(in)
	if err := <-s.end; err != nil {
		return nil, err
	}
	return tenfold(in), nil
}

func tenfold(in []int) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = 10 * v
	}
	return out
}

// result is what a call of Do returned.
type result struct {
	out int
	err error
}

// send calls Do in a goroutine and returns when its input waits.
func send(ctx context.Context, b *batcher, in int) <-chan result {
	results := make(chan result, 1)
	go func() {
		out, err := b.Do(ctx, in)
		results <- result{out, err}
	}()
	synctest.Wait()
	return results
}

func expect(t *testing.T, what string, got <-chan result, want result) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-got:
		if r.out != want.out || !errors.Is(r.err, want.err) {
			t.Errorf("%s: got %d, %v, want %d, %v", what, r.out, r.err, want.out, want.err)
		}
	default:
		t.Errorf("%s: no result", what)
	}
}

// equal reports a difference between two values, which what describes.
func equal[T any](t testing.TB, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(what...), diff)
	}
}

func numbers(from, to int) []int {
	var all []int
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

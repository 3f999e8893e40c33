package batch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

var (
	errCulprit = errors.New("a row that the database refuses")
	errAway    = errors.New("the connection is gone")
)

// faulty is a trip that fails when it carries a culprit, and that waits for release when it carries a slow input alone.
// The first trip, of input 0, waits for begin, so that all others share the second.
type faulty struct {
	culprits, slow []int
	err            error
	begin, release chan struct{}

	mu                  sync.Mutex
	trips, flying, most int
}

func (f *faulty) trip(_ context.Context, in []int) ([]int, error) {
	f.count(1)
	defer f.count(-1)
	if in[0] == 0 {
		<-f.begin
	}
	if len(in) == 1 && slices.Contains(f.slow, in[0]) {
		<-f.release
	}
	for _, v := range in {
		if slices.Contains(f.culprits, v) {
			return nil, f.err
		}
	}
	return tenfold(in), nil
}

func (f *faulty) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trips += max(0, n)
	f.flying += n
	f.most = max(f.most, f.flying)
}

func newFaulty(err error) *faulty {
	return &faulty{err: err, begin: make(chan struct{}), release: make(chan struct{})}
}

func (f *faulty) lane() *batch.Batcher[int, int] {
	return batch.New(batch.Config[int, int]{
		Flush: f.trip, Timeout: time.Minute, MaxWaiting: 100, MaxWeight: 100,
		RetryIndividually: func(err error) bool { return errors.Is(err, errCulprit) },
	})
}

// together makes the inputs share a trip, and returns when everybody waits for something or has an answer.
func (f *faulty) together(t *testing.T, lane *batch.Batcher[int, int], in ...int) map[int]<-chan answer {
	t.Helper()
	got := map[int]<-chan answer{0: send(t.Context(), lane, 0)}
	for _, v := range in {
		got[v] = send(t.Context(), lane, v)
	}
	close(f.begin)
	synctest.Wait()
	return got
}

func TestLaneOnlyTheCulpritFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(errCulprit)
		f.culprits = []int{3, 6}
		got := f.together(t, f.lane(), 1, 2, 3, 4, 5, 6, 7)
		for v, answers := range got {
			want := answer{out: 10 * v}
			if slices.Contains(f.culprits, v) {
				want = answer{err: errCulprit}
			}
			expect(t, "input "+string(rune('0'+v)), answers, want)
		}
		if got, want := f.trips, 1+1+7; got != want {
			t.Errorf("%d trips, want %d", got, want)
		}
	})
}

func TestLaneOtherErrorsAreEverybodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(errAway) // it may have taken effect, so it is not taken twice
		f.culprits = []int{3}
		for v, answers := range f.together(t, f.lane(), 1, 2, 3) {
			want := answer{err: errAway}
			if v == 0 {
				want = answer{}
			}
			expect(t, "input "+string(rune('0'+v)), answers, want)
		}
		if got, want := f.trips, 2; got != want {
			t.Errorf("%d trips, want %d", got, want)
		}
	})
}

func TestLaneOneInputIsNotTakenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(errCulprit)
		f.culprits = []int{1}
		expect(t, "the culprit", send(t.Context(), f.lane(), 1), answer{err: errCulprit})
		if got, want := f.trips, 1; got != want {
			t.Errorf("%d trips, want %d", got, want)
		}
	})
}

// TestLaneSlowOneStallsNobody: of the inputs that go alone one waits for a lock; its neighbours and the lane go on.
func TestLaneSlowOneStallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(errCulprit)
		f.culprits, f.slow = []int{3}, []int{1, 3}
		lane := f.lane()
		got := f.together(t, lane, 1, 2, 3, 4, 5)
		for _, v := range []int{2, 4, 5} {
			expect(t, "a neighbour", got[v], answer{out: 10 * v})
		}
		expect(t, "one that came later", send(t.Context(), lane, 9), answer{out: 90})
		close(f.release)
		expect(t, "the slow one", got[1], answer{out: 10})
		expect(t, "the slow culprit", got[3], answer{err: errCulprit})
	})
}

// TestLaneAloneIsBounded: a failed trip of many inputs must not take all of the pool's connections.
func TestLaneAloneIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(errCulprit)
		f.culprits = []int{1}
		var in []int
		for v := 1; v <= 20; v++ {
			in = append(in, v)
		}
		f.slow = in
		lane := f.lane()
		got := f.together(t, lane, in...)
		if n := f.flying; n != 4 {
			t.Errorf("%d go at the same time, want 4", n)
		}
		expect(t, "one that came later", send(t.Context(), lane, 99), answer{out: 990})
		close(f.release)
		for _, v := range in[1:] {
			expect(t, "a neighbour", got[v], answer{out: 10 * v})
		}
		expect(t, "the culprit", got[1], answer{err: errCulprit})
		if n := f.most; n != 4+1 { // the lane's own trip is not one of them
			t.Errorf("at most %d trips were under way, want 5", n)
		}
	})
}

// TestLaneLeavingWhileAlone: a caller whose input goes alone may leave, as others may.
func TestLaneLeavingWhileAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(errCulprit)
		f.culprits, f.slow = []int{2}, []int{1}
		lane := f.lane()
		ctx, cancel := context.WithCancel(t.Context())
		send(t.Context(), lane, 0)
		slow, culprit := send(ctx, lane, 1), send(t.Context(), lane, 2)
		close(f.begin)
		expect(t, "the culprit", culprit, answer{err: errCulprit})
		cancel()
		expect(t, "who left", slow, answer{err: context.Canceled})
		close(f.release)
	})
}

func TestLanePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		lane := batch.New(batch.Config[int, int]{
			Flush: func(_ context.Context, in []int) ([]int, error) {
				if calls++; calls == 1 {
					panic("out of ideas")
				}
				return tenfold(in), nil
			},
			Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10,
		})
		_, err := lane.Do(t.Context(), 1)
		if err == nil || !strings.Contains(err.Error(), "out of ideas") || !strings.Contains(err.Error(), "retry_test.go") {
			t.Errorf("got %v, want what was said and where", err)
		}
		expect(t, "after a panic", send(t.Context(), lane, 2), answer{out: 20})
	})
}

// TestLaneMissingResults: a trip that brings fewer results than it was given inputs fails all of them, rather than the
// process.
func TestLaneMissingResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := batch.New(batch.Config[int, int]{
			Flush:   func(_ context.Context, in []int) ([]int, error) { return tenfold(in)[1:], nil },
			Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10,
		})
		if got, err := lane.Do(t.Context(), 1); err == nil {
			t.Errorf("got %d", got)
		}
	})
}

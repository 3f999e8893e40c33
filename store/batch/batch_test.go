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

	"github.com/google/go-cmp/cmp"
)

// The tests of this file run in bubbles of package synctest: their clock is not the machine's, Wait returns when
// everybody waits for something, and a goroutine that a lane left behind would fail the test.

// track is a database for lanes: it tells what each trip carries, and lets it end when the test says how.
type track struct {
	begun chan []int
	end   chan error
}

func newTrack() *track { return &track{begun: make(chan []int), end: make(chan error)} }

func (k *track) trip(_ context.Context, in []int) ([]int, error) {
	k.begun <- slices.Clone(in)
	if err := <-k.end; err != nil {
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

// answer is what a caller of Do got.
type answer struct {
	out int
	err error
}

// send calls Do and returns when its input waits in the lane.
func send(ctx context.Context, lane *batch.Batcher[int, int], in int) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		out, err := lane.Do(ctx, in)
		answers <- answer{out, err}
	}()
	synctest.Wait()
	return answers
}

func expect(t *testing.T, what string, got <-chan answer, want answer) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-got:
		if a.out != want.out || !errors.Is(a.err, want.err) {
			t.Errorf("%s: got %d, %v, want %d, %v", what, a.out, a.err, want.out, want.err)
		}
	default:
		t.Errorf("%s has no answer", what)
	}
}

func TestLaneSharesTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrack()
		lane := batch.New(batch.Config[int, int]{Flush: k.trip, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10})
		first := send(t.Context(), lane, 1)
		if diff := cmp.Diff([]int{1}, <-k.begun); diff != "" {
			t.Errorf("the first trip waits for nobody (-want +got):\n%s", diff)
		}
		var rest []<-chan answer
		for in := 2; in <= 5; in++ {
			rest = append(rest, send(t.Context(), lane, in))
		}
		select {
		case in := <-k.begun:
			t.Errorf("a second trip is in flight, with %v", in)
		default:
		}
		k.end <- nil
		if diff := cmp.Diff([]int{2, 3, 4, 5}, <-k.begun); diff != "" {
			t.Errorf("the second trip carries who waited, in order (-want +got):\n%s", diff)
		}
		expect(t, "the first", first, answer{out: 10})
		k.end <- nil
		for i, got := range rest {
			expect(t, fmt.Sprintf("input %d", i+2), got, answer{out: 10 * (i + 2)})
		}
		// The lane is idle, without a goroutine, and starts again.
		again := send(t.Context(), lane, 6)
		if diff := cmp.Diff([]int{6}, <-k.begun); diff != "" {
			t.Errorf("a trip after a pause (-want +got):\n%s", diff)
		}
		k.end <- nil
		expect(t, "after a pause", again, answer{out: 60})
	})
}

func TestLaneBoundsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrack()
		lane := batch.New(batch.Config[int, int]{Flush: k.trip, Timeout: time.Minute, MaxWaiting: 2, MaxWeight: 10})
		under := send(t.Context(), lane, 1) // under way, so it does not wait
		<-k.begun
		second, third := send(t.Context(), lane, 2), send(t.Context(), lane, 3)
		expect(t, "one too many", send(t.Context(), lane, 4), answer{err: batch.ErrOverloaded})
		k.end <- nil
		expect(t, "under way", under, answer{out: 10})
		if diff := cmp.Diff([]int{2, 3}, <-k.begun); diff != "" {
			t.Errorf("the next trip (-want +got):\n%s", diff)
		}
		fifth := send(t.Context(), lane, 5) // there is room again
		k.end <- nil
		expect(t, "the second", second, answer{out: 20})
		expect(t, "the third", third, answer{out: 30})
		<-k.begun
		k.end <- nil
		expect(t, "after the crowd", fifth, answer{out: 50})
	})
}

func TestLaneWeighs(t *testing.T) {
	for _, test := range []struct {
		name  string
		load  int
		plain bool // without Weigh
		in    []int
		want  [][]int
	}{
		{"all fit", 10, false, []int{2, 3, 5}, [][]int{{2, 3, 5}}},
		{"the next begins where the load would be passed", 10, false, []int{4, 6, 1, 9, 9}, [][]int{{4, 6}, {1, 9}, {9}}},
		{"one that is too heavy goes alone", 10, false, []int{3, 70, 3, 3}, [][]int{{3}, {70}, {3, 3}}},
		{"nobody overtakes", 10, false, []int{8, 8, 1}, [][]int{{8}, {8, 1}}},
		{"each weighs 1", 2, true, []int{70, 80, 90}, [][]int{{70, 80}, {90}}},
		{"no load", 0, true, []int{7, 8}, [][]int{{7}, {8}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newTrack()
				cfg := batch.Config[int, int]{Flush: k.trip, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: test.load}
				if !test.plain {
					cfg.Weight = func(in int) int { return in }
				}
				lane := batch.New(cfg)
				send(t.Context(), lane, 0)
				<-k.begun
				for _, in := range test.in {
					send(t.Context(), lane, in)
				}
				var got [][]int
				for range test.want {
					k.end <- nil
					got = append(got, <-k.begun)
				}
				k.end <- nil
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("trips (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLaneCarriesWhatNobodyWaitsFor: a caller's context ends its waiting, not what it asked for.
func TestLaneCarriesWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrack()
		lane := batch.New(batch.Config[int, int]{Flush: k.trip, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10})
		ctx, cancel := context.WithCancel(t.Context())
		under := send(ctx, lane, 1)
		<-k.begun
		waiting, neighbour := send(ctx, lane, 2), send(t.Context(), lane, 3)
		cancel()
		expect(t, "under way", under, answer{err: context.Canceled})
		expect(t, "waiting", waiting, answer{err: context.Canceled})
		k.end <- nil
		if diff := cmp.Diff([]int{2, 3}, <-k.begun); diff != "" {
			t.Errorf("the second trip (-want +got):\n%s", diff)
		}
		k.end <- nil
		expect(t, "the neighbour", neighbour, answer{out: 30})
	})
}

func TestLaneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := batch.New(batch.Config[int, int]{
			Flush: func(ctx context.Context, in []int) ([]int, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Timeout: 3 * time.Second, MaxWaiting: 10, MaxWeight: 10,
		})
		start := time.Now()
		if _, err := lane.Do(t.Context(), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got, want := time.Since(start), 3*time.Second; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
	})
}

// TestLaneSplitsACrowd: of many who wait two thirds go together, and the others with who comes meanwhile.
func TestLaneSplitsACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrack()
		lane := batch.New(batch.Config[int, int]{Flush: k.trip, Timeout: time.Minute, MaxWaiting: 300, MaxWeight: 200, DropAbandoned: true})
		leaving, cancel := context.WithCancel(t.Context())
		answers := make(map[int]<-chan answer)
		come := func(from, to int) {
			for in := from; in <= to; in++ {
				ctx := t.Context()
				if in == 50 || in == 55 {
					ctx = leaving
				}
				answers[in] = send(ctx, lane, in)
			}
		}
		crowd := func(from, to int, end error) {
			answers[0] = send(t.Context(), lane, 0)
			<-k.begun
			come(from, to)
			k.end <- end
			synctest.Wait() // until the next trip is under way
		}
		carries := func(what string, want []int, end error) {
			t.Helper()
			if diff := cmp.Diff(want, <-k.begun); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			k.end <- end
			for _, in := range want {
				if end == nil {
					expect(t, fmt.Sprintf("%s: input %d", what, in), answers[in], answer{out: 10 * in})
				} else {
					expect(t, fmt.Sprintf("%s: input %d", what, in), answers[in], answer{err: end})
				}
			}
		}
		crowd(1, 60, nil)
		come(61, 61)
		if got := lane.Stats().Waiting; got != 21 {
			t.Errorf("%d wait, want the 20 that did not go and one more", got)
		}
		cancel()
		for _, in := range []int{50, 55} {
			expect(t, fmt.Sprintf("input %d, which left", in), answers[in], answer{err: context.Canceled})
		}
		carries("two thirds", numbers(1, 40), nil)
		carries("the others, but for two, and one more", slices.Concat(numbers(41, 49), numbers(51, 54), numbers(56, 61)), nil)

		crowd(1, 32, nil)
		carries("no crowd", numbers(1, 32), nil)
		crowd(1, 33, nil)
		carries("a crowd by one", numbers(1, 32), nil)
		carries("the one", numbers(33, 33), nil)

		// Nobody waits for two trips more.
		crowd(101, 250, nil)
		carries("two thirds of 150", numbers(101, 200), nil)
		carries("all others, though a crowd", numbers(201, 250), nil)

		// What comes fills the trip of those who did not go, and then one behind it.
		crowd(101, 160, nil)
		come(161, 350)
		carries("two thirds, before many come", numbers(101, 140), nil)
		carries("a full trip, before another one", numbers(141, 340), nil)
		carries("the last", numbers(341, 350), nil)

		// A database that fails may have them wait for long.
		failed := errors.New("failed")
		crowd(101, 160, failed)
		carries("all after a failure", numbers(101, 160), failed)
		crowd(201, 260, nil)
		carries("two thirds again", numbers(201, 240), nil)
		carries("the others again", numbers(241, 260), nil)
		if got := lane.Stats().Waiting; got != 0 {
			t.Errorf("%d wait at the end", got)
		}
	})
}

// TestLaneTakesWhoIsAboutToBoard: of many who come at once the first does not go alone.
func TestLaneTakesWhoIsAboutToBoard(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 100 {
		var together atomic.Int32 // in the first trip
		lane := batch.New(batch.Config[int, int]{
			Flush: func(_ context.Context, in []int) ([]int, error) {
				together.CompareAndSwap(0, int32(len(in)))
				return tenfold(in), nil
			},
			Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10,
		})
		var wg sync.WaitGroup
		for in := range 8 {
			wg.Go(func() { lane.Do(t.Context(), in) })
		}
		wg.Wait()
		if together.Load() == 8 {
			return
		}
	}
	t.Error("never did all eight go together")
}

func numbers(from, to int) []int {
	var all []int
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// TestLaneUnderLoad has no order of its own to expect: one trip at a time, and each caller gets what belongs to its input,
// unless he leaves.
func TestLaneUnderLoad(t *testing.T) {
	const callers = 2000
	for _, load := range []int{50, callers} {
		var flying, trips atomic.Int32
		lane := batch.New(batch.Config[int, int]{
			Flush: func(_ context.Context, in []int) ([]int, error) {
				if flying.Add(1) != 1 {
					t.Error("two trips are in flight")
				}
				defer flying.Add(-1)
				trips.Add(1)
				return tenfold(in), nil
			},
			Timeout: time.Minute, MaxWaiting: callers, MaxWeight: load, DropAbandoned: true,
		})
		var wg sync.WaitGroup
		for in := range callers {
			ctx, leave := t.Context(), func() {}
			if in%3 == 0 {
				ctx, leave = context.WithCancel(ctx)
			}
			wg.Go(func() {
				if out, err := lane.Do(ctx, in); (err != nil || out != 10*in) && (err != context.Canceled || in%3 != 0) {
					t.Errorf("%d: got %d, %v", in, out, err)
				}
			})
			wg.Go(leave)
		}
		wg.Wait()
		if n := trips.Load(); int(n) < callers/3/load || n > callers {
			t.Errorf("%d trips for %d callers", n, callers)
		}
		if got := lane.Stats().Waiting; got != 0 {
			t.Errorf("%d wait at the end", got)
		}
	}
}

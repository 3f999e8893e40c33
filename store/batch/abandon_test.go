package batch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"

	"github.com/google/go-cmp/cmp"
)

// TestLaneLeave: where callers may leave, what they asked for leaves with them, unless its trip has begun; the others get
// what is theirs.
func TestLaneLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrack()
		lane := batch.New(batch.Config[int, int]{Flush: k.trip, Timeout: time.Minute, MaxWaiting: 6, MaxWeight: 6, DropAbandoned: true})
		ctx, cancel := context.WithCancel(t.Context())
		under := send(ctx, lane, 1)
		<-k.begun
		leaving := []<-chan answer{send(ctx, lane, 2)}
		staying := map[int]<-chan answer{3: send(t.Context(), lane, 3)}
		leaving = append(leaving, send(ctx, lane, 4), send(ctx, lane, 5))
		staying[6] = send(t.Context(), lane, 6)
		leaving = append(leaving, send(ctx, lane, 7))
		expect(t, "one too many", send(t.Context(), lane, 8), answer{err: batch.ErrOverloaded})
		cancel()
		expect(t, "under way", under, answer{err: context.Canceled})
		for _, answers := range leaving {
			expect(t, "who left", answers, answer{err: context.Canceled})
		}
		if got, want := lane.Stats().Waiting, 2; got != want {
			t.Errorf("%d wait, want %d", got, want)
		}
		staying[9] = send(t.Context(), lane, 9) // there is room again
		k.end <- nil
		if diff := cmp.Diff([]int{3, 6, 9}, <-k.begun); diff != "" {
			t.Errorf("the second trip (-want +got):\n%s", diff)
		}
		k.end <- nil
		for v, answers := range staying {
			expect(t, "who stayed", answers, answer{out: 10 * v})
		}

		// A trip that all have left is none.
		ctx, cancel = context.WithCancel(t.Context())
		send(t.Context(), lane, 10)
		<-k.begun
		send(ctx, lane, 11)
		cancel()
		synctest.Wait()
		k.end <- nil
		synctest.Wait()
		if s := lane.Stats(); s.Waiting != 0 || s.Inputs != 1+3+1 {
			t.Errorf("%d wait, %d were carried", s.Waiting, s.Inputs)
		}
	})
}

// TestLaneLeaveUnderWay: what failed while its caller left is not tried again.
func TestLaneLeaveUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrack()
		is := func(err error) bool { return err == errCulprit }
		lane := batch.New(batch.Config[int, int]{
			Flush: k.trip, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10, RetryIndividually: is, Waits: is, DropAbandoned: true,
			Patient: func(_ context.Context, in []int) ([]int, error) {
				t.Errorf("%v is carried patiently", in)
				return tenfold(in), nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		alone := send(ctx, lane, 1)
		<-k.begun
		first, stays, second := send(ctx, lane, 2), send(t.Context(), lane, 3), send(ctx, lane, 4)
		again, leave := context.WithCancel(t.Context())
		late := send(again, lane, 5)
		cancel()
		for _, answers := range []<-chan answer{alone, first, second} {
			expect(t, "who left", answers, answer{err: context.Canceled})
		}
		k.end <- errCulprit
		if diff := cmp.Diff([]int{3, 5}, <-k.begun); diff != "" {
			t.Errorf("the second trip (-want +got):\n%s", diff)
		}
		leave()
		expect(t, "who left under way", late, answer{err: context.Canceled})
		k.end <- errCulprit
		if diff := cmp.Diff([]int{3}, <-k.begun); diff != "" {
			t.Errorf("what goes alone (-want +got):\n%s", diff)
		}
		k.end <- nil
		expect(t, "who stayed", stays, answer{out: 30})
		if n := lane.Stats().Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// locks is a database in which keys may be locked: a trip gives up at once where it meets one, and one that is patient waits
// until it is free.
type locks struct {
	begin chan struct{} // what a trip of input 0 waits for

	mu      sync.Mutex
	trips   [][]int
	patient [][]int
	locked  map[int]chan struct{}
}

func (l *locks) trip(_ context.Context, in []int) ([]int, error) {
	if in[0] == 0 {
		<-l.begin
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trips = append(l.trips, slices.Clone(in))
	for _, v := range in {
		if l.locked[v%100] != nil {
			return nil, errCulprit
		}
	}
	return tenfold(in), nil
}

func (l *locks) wait(_ context.Context, in []int) ([]int, error) {
	l.mu.Lock()
	l.patient = append(l.patient, slices.Clone(in))
	free := l.locked[in[0]%100]
	l.mu.Unlock()
	<-free
	return tenfold(in), nil
}

func (l *locks) lane() *batch.Batcher[int, int] {
	is := func(err error) bool { return err == errCulprit }
	return batch.New(batch.Config[int, int]{
		Flush: l.trip, Timeout: time.Hour, MaxWaiting: 100, MaxWeight: 100, RetryIndividually: is, Waits: is, Patient: l.wait, DropAbandoned: true,
	})
}

// TestLanePatience: inputs that wait for a key of their own hold up nobody, not even when they come alone, and at most two of
// a lane wait so, however many trips they came with.
func TestLanePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locks{locked: map[int]chan struct{}{7: make(chan struct{})}}
		lane := l.lane()
		stuck := map[int]<-chan answer{}
		for v := 7; v < 1000; v += 100 {
			stuck[v] = send(t.Context(), lane, v)
			expect(t, "a neighbour", send(t.Context(), lane, v+1), answer{out: 10 * (v + 1)})
		}
		if got, want := len(l.patient), 2; got != want {
			t.Errorf("%d wait for the key, want %d", got, want)
		}
		if got, want := lane.Stats().Waiting, 8; got != want {
			t.Errorf("%d wait for a place, want %d", got, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		leaves := send(ctx, lane, 1007)
		cancel()
		expect(t, "who left", leaves, answer{err: context.Canceled})
		close(l.locked[7])
		for v, answers := range stuck {
			expect(t, "one that waited for its key", answers, answer{out: 10 * v})
		}
		if slices.ContainsFunc(l.patient, func(in []int) bool { return in[0] == 1007 }) {
			t.Error("what its caller had left was carried")
		}
	})
}

// TestLaneInnocentsFirst: of inputs that shared a trip, those that wait for nothing have their results before any of the
// others has waited.
func TestLaneInnocentsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locks{locked: map[int]chan struct{}{7: make(chan struct{})}, begin: make(chan struct{})}
		lane := l.lane()
		send(t.Context(), lane, 0) // waits for begin, so that all others share the second trip
		answers := make(map[int]<-chan answer)
		for _, v := range []int{1, 7, 107, 207, 307, 407, 507, 2, 607, 3} {
			answers[v] = send(t.Context(), lane, v)
		}
		close(l.begin)
		for _, v := range []int{1, 2, 3} {
			expect(t, "one that waits for nothing", answers[v], answer{out: 10 * v})
			delete(answers, v)
		}
		close(l.locked[7])
		for v, a := range answers {
			expect(t, "one that waited", a, answer{out: 10 * v})
		}
	})
}

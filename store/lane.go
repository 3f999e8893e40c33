package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// ErrOverloaded is returned when as many callers wait in a lane as it lets wait.
var ErrOverloaded = errors.New("too many requests are waiting for the database")

// LaneConfig says what a lane carries and how much.
type LaneConfig[In, Out any] struct {
	// Trip is one round trip for all inputs: it returns one result for each, in their order.
	Trip func(ctx context.Context, in []In) ([]Out, error)

	// Timeout bounds a trip, so that no caller waits for ever for a database that does not answer.
	Timeout time.Duration

	// Waiting is how many inputs may wait for the next trips; Do refuses more with ErrOverloaded.
	Waiting int

	// Weigh and Load bound what a trip carries: the sum of the weights of its inputs, if there are several, is at most
	// Load. Without Weigh, every input weighs 1.
	Weigh func(In) int
	Load  int

	// Alone tells errors of a trip that one of its inputs may have caused. The inputs are then carried once more, each
	// by a trip of its own, so that only the culprit's caller gets the error. It must be false of an error that leaves
	// open whether the trip took effect, unless taking it twice does no harm.
	Alone func(error) bool
}

// A Lane shares round trips (group commit): while one is under way, the inputs that arrive queue up, and the next trip
// carries them all. An update's row lock is held until its commit is on disk; a hundred requests that wait for one disk
// write cost what one costs.
//
// One trip is in flight at a time: a second one would only wait for the row locks of the first, with half the inputs.
// There is no linger timer either, as the trip under way is the wait. A trip does not end with a caller's context: what
// was asked is done (and counted), even when nobody waits for the answer any more.
type Lane[In, Out any] struct {
	cfg LaneConfig[In, Out]

	mu      sync.Mutex
	busy    bool // a goroutine is carrying trips; it ends when nothing waits
	queue   []*trip[In, Out]
	waiting int
	stats   LaneStats
}

// LaneStats tells what a lane has done so far, and how many inputs wait.
type LaneStats struct {
	Sizes      [len(LaneSizes) + 1]uint64 // trips, by how many inputs they carried: at most LaneSizes[i], the last of more
	Inputs     uint64                     // carried
	Time       time.Duration              // of the trips
	Failed     uint64                     // trips
	Apart      uint64                     // trips whose inputs went on, each alone
	Overloaded uint64                     // inputs refused
	Waiting    int
}

// LaneSizes are the bounds by which trips are counted.
var LaneSizes = [...]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// Stats returns what the lane has done so far.
func (l *Lane[In, Out]) Stats() LaneStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Waiting = l.waiting
	return s
}

// trip is what one round trip carries. Its results are set before done is closed.
type trip[In, Out any] struct {
	in   []In
	load int
	out  []Out
	err  error
	done chan struct{}

	apart []*trip[In, Out] // when the trip failed and its inputs go on, each alone
}

// NewLane returns a lane. It holds no goroutine while it is idle.
func NewLane[In, Out any](cfg LaneConfig[In, Out]) *Lane[In, Out] {
	if cfg.Weigh == nil {
		cfg.Weigh = func(In) int { return 1 }
	}
	return &Lane[In, Out]{cfg: cfg}
}

// Do sends one input with the next trip and waits for its result, or for the end of ctx.
func (l *Lane[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	t, i, err := l.board(in)
	if err != nil {
		return out, err
	}
	countTrip(ctx)
	for {
		select {
		case <-t.done:
		case <-ctx.Done():
			select { // a result that is there is given, even late
			case <-t.done:
			default:
				return out, ctx.Err()
			}
		}
		switch {
		case t.apart != nil:
			t, i = t.apart[i], 0
		case t.err != nil:
			return out, t.err
		default:
			return t.out[i], nil
		}
	}
}

// board puts the input into the last waiting trip, or into a new one, and sees to it that trips are carried.
func (l *Lane[In, Out]) board(in In) (t *trip[In, Out], i int, err error) {
	weight := l.cfg.Weigh(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.cfg.Waiting {
		l.stats.Overloaded++
		return nil, 0, ErrOverloaded
	}
	if n := len(l.queue); n > 0 && l.queue[n-1].load+weight <= l.cfg.Load {
		t = l.queue[n-1]
	} else {
		t = &trip[In, Out]{done: make(chan struct{})}
		l.queue = append(l.queue, t)
	}
	t.in = append(t.in, in)
	t.load += weight
	l.waiting++
	if !l.busy {
		l.busy = true
		go l.carry()
	}
	return t, len(t.in) - 1, nil
}

func (l *Lane[In, Out]) carry() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.busy = false
			l.mu.Unlock()
			return
		}
		t := l.queue[0]
		l.queue = append(l.queue[:0], l.queue[1:]...)
		l.waiting -= len(t.in)
		l.mu.Unlock()
		began := time.Now()
		l.take(t)
		took := time.Since(began)
		apart := len(t.in) > 1 && t.err != nil && l.cfg.Alone != nil && l.cfg.Alone(t.err)
		if apart {
			l.part(t)
		}
		close(t.done)
		l.count(t, took, apart)
	}
}

func (l *Lane[In, Out]) count(t *trip[In, Out], took time.Duration, apart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := 0
	for size < len(LaneSizes) && len(t.in) > LaneSizes[size] {
		size++
	}
	l.stats.Sizes[size]++
	l.stats.Inputs += uint64(len(t.in))
	l.stats.Time += took
	if t.err != nil {
		l.stats.Failed++
	}
	if apart {
		l.stats.Apart++
	}
}

func (l *Lane[In, Out]) take(t *trip[In, Out]) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			t.err = fmt.Errorf("a trip panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if t.out, t.err = l.cfg.Trip(ctx, t.in); t.err == nil && len(t.out) != len(t.in) {
		t.err = fmt.Errorf("a trip brought %d results for %d inputs", len(t.out), len(t.in))
	}
}

// part lets each input of a failed trip go alone. The lane goes on meanwhile: one of them may wait for a lock.
func (l *Lane[In, Out]) part(t *trip[In, Out]) {
	for i := range t.in {
		t.apart = append(t.apart, &trip[In, Out]{in: t.in[i : i+1], done: make(chan struct{})})
	}
	go func() {
		places := make(chan struct{}, alone)
		for _, one := range t.apart {
			places <- struct{}{}
			go func() {
				l.take(one)
				close(one.done)
				<-places
			}()
		}
	}()
}

// alone is how many inputs of a failed trip go at the same time.
const alone = 4

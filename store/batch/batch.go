package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"aiv/store"
)

// ErrOverloaded is returned when as many callers wait in a lane as it lets wait.
var ErrOverloaded = errors.New("too many requests are waiting for the database")

// Config says what a lane carries and how much.
type Config[In, Out any] struct {
	// Trip is one round trip for all inputs: it returns one result for each, in their order.
	Flush func(ctx context.Context, in []In) ([]Out, error)

	// Timeout bounds a trip, so that no caller waits for ever for a database that does not answer.
	Timeout time.Duration

	// Waiting is how many inputs may wait for the next trips; Do refuses more with ErrOverloaded.
	MaxWaiting int

	// Weight and Load bound what a trip carries: the sum of the weights of its inputs, if there are several, is at most
	// Load. Without Weigh, every input weighs 1.
	Weight    func(In) int
	MaxWeight int

	// Alone tells errors of a trip that one of its inputs may have caused. The inputs are then carried once more, each
	// by a trip of its own, so that only the culprit's caller gets the error. It must be false of an error that leaves
	// open whether the trip took effect, unless taking it twice does no harm.
	RetryIndividually func(error) bool

	// Brief is how an input of such a trip is carried alone; nil: by Trip. Others wait for its place.
	Brief func(ctx context.Context, in []In) ([]Out, error)

	// Waits tells errors that end a wait for one input's own sake. Where it is given, such an input, when it was carried
	// alone, is carried once more by Patient, which may wait longer: a Trip that waited would hold up everybody.
	Waits   func(error) bool
	Patient func(ctx context.Context, in []In) ([]Out, error)

	// Leave has an input whose caller has gone before its trip begins go, too. Without it, what was asked for is done.
	DropAbandoned bool
}

// A Lane shares round trips (group commit): while one is under way, the inputs that arrive queue up, and the next trip
// carries them all. An update's row lock is held until its commit is on disk; a hundred requests that wait for one disk
// write cost what one costs.
//
// One trip is in flight at a time: a second one would only wait for the row locks of the first, with half the inputs.
// There is no linger timer either, as the trip under way is the wait. If many wait, some of them wait for one trip more: were
// all to go together, they would be answered together, come back together, and the database would wait for them meanwhile.
// A trip does not end with a caller's context: once it has begun, what was asked is done, even when nobody waits for the
// answer any more.
type Batcher[In, Out any] struct {
	cfg Config[In, Out]

	mu      sync.Mutex
	busy    bool // a goroutine is carrying trips; it ends when nothing waits
	failed  bool // the latest trip
	queue   []*trip[In, Out]
	waiting int
	stats   Stats

	alone, patient chan struct{} // places
}

// Stats tells what a lane has done so far, and how many inputs wait.
type Stats struct {
	Sizes      [len(Sizes) + 1]uint64 // trips, by how many inputs they carried: at most Sizes[i], the last of more
	Inputs     uint64                 // carried
	Time       time.Duration          // of the trips
	Failed     uint64                 // trips
	Retried    uint64                 // trips whose inputs went on, each alone
	Overloaded uint64                 // inputs refused
	Waiting    int
}

// Sizes are the bounds by which trips are counted.
var Sizes = [...]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// Stats returns what the lane has done so far.
func (l *Batcher[In, Out]) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Waiting = l.waiting
	return s
}

// trip is what one round trip carries. Its results are set before done is closed.
type trip[In, Out any] struct {
	in    []In
	load  int
	begun bool
	left  map[int]bool // inputs whose callers had gone when it began, and that it does not carry
	gone  map[int]bool // inputs whose callers have gone since
	out   []Out
	err   error
	done  chan struct{}

	rest   *trip[In, Out]   // where the inputs beyond its own have gone, when it was split
	waited int              // inputs that were in a trip already that was split: they come first
	apart  []*trip[In, Out] // when the trip failed and its inputs go on, each alone
}

// New returns a lane. It holds no goroutine while it is idle.
func New[In, Out any](cfg Config[In, Out]) *Batcher[In, Out] {
	if cfg.Weight == nil {
		cfg.Weight = func(In) int { return 1 }
	}
	if cfg.Brief == nil {
		cfg.Brief = cfg.Flush
	}
	return &Batcher[In, Out]{cfg: cfg, alone: make(chan struct{}, alone), patient: make(chan struct{}, patient)}
}

// Do sends one input with the next trip and waits for its result, or for the end of ctx.
func (l *Batcher[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	t, i, err := l.board(in)
	if err != nil {
		return out, err
	}
	store.AddRoundTrip(ctx)
	for {
		select {
		case <-t.done:
		case <-ctx.Done():
			select { // a result that is there is given, even late
			case <-t.done:
			default:
				l.leave(t, i)
				return out, ctx.Err()
			}
		}
		if next, place := t.next(i); next != nil {
			t, i = next, place
			continue
		}
		if t.err != nil {
			return out, t.err
		}
		return t.out[i], nil
	}
}

// next returns the trip that carries an input instead, and its place there; nil if it is this one, or none.
func (t *trip[In, Out]) next(i int) (*trip[In, Out], int) {
	switch {
	case i >= len(t.in):
		return t.rest, i - len(t.in)
	case t.apart != nil:
		return t.apart[i], 0
	}
	return nil, 0
}

// board puts the input into the last waiting trip, or into a new one, and sees to it that trips are carried.
func (l *Batcher[In, Out]) board(in In) (t *trip[In, Out], i int, err error) {
	weight := l.cfg.Weight(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.cfg.MaxWaiting {
		l.stats.Overloaded++
		return nil, 0, ErrOverloaded
	}
	if n := len(l.queue); n > 0 && l.queue[n-1].load+weight <= l.cfg.MaxWeight {
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

// leave takes an input off a trip that has not begun, or off what comes of one that has.
func (l *Batcher[In, Out]) leave(t *trip[In, Out], i int) {
	if !l.cfg.DropAbandoned {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for next, place := t.next(i); next != nil; next, place = t.next(i) {
		t, i = next, place
	}
	if t.begun {
		t.gone = with(t.gone, i)
		return
	}
	t.left = with(t.left, i)
	t.load -= l.cfg.Weight(t.in[i])
	clear(t.in[i : i+1]) // what it holds may be large
	l.waiting--
}

func with(set map[int]bool, i int) map[int]bool {
	if set == nil {
		set = make(map[int]bool)
	}
	set[i] = true
	return set
}

// begin returns what the trip carries.
func (l *Batcher[In, Out]) begin(t *trip[In, Out]) []In {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beginLocked(t)
}

func (l *Batcher[In, Out]) beginLocked(t *trip[In, Out]) []In {
	t.begun = true
	in := t.in
	if len(t.left) > 0 {
		in = nil
		for i := range t.in {
			if !t.left[i] {
				in = append(in, t.in[i])
			}
		}
	}
	l.waiting -= len(in)
	return in
}

// crowd is how many inputs go together in any case.
const crowd = 32

// most is how many of a trip's inputs go. Of a crowd they are two thirds, and whoever has waited for one trip more already.
// All go if there are others behind them, or if the trip before failed: what they wait for may be long in coming.
func (l *Batcher[In, Out]) most(t *trip[In, Out]) int {
	if len(l.queue) > 1 || l.failed {
		return len(t.in)
	}
	return min(len(t.in), max(crowd, len(t.in)*2/3, t.waited))
}

// split moves the inputs of a trip beyond the first n into a trip of their own.
func (l *Batcher[In, Out]) split(t *trip[In, Out], n int) *trip[In, Out] {
	rest := &trip[In, Out]{in: slices.Clone(t.in[n:]), done: make(chan struct{})}
	rest.waited = len(rest.in)
	for i := range rest.in {
		if t.left[n+i] {
			rest.left = with(rest.left, i)
		} else {
			rest.load += l.cfg.Weight(rest.in[i])
		}
	}
	t.in, t.rest = t.in[:n], rest
	return rest
}

// carry carries trips while somebody waits. Who is about to board now goes first: callers come many at a time, when a trip
// of another lane has ended or a network poll has found them, and a trip for the first one alone would have the others wait.
func (l *Batcher[In, Out]) carry() {
	runtime.Gosched()
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.busy = false
			l.mu.Unlock()
			return
		}
		t := l.queue[0]
		if most := l.most(t); most < len(t.in) {
			l.queue[0] = l.split(t, most)
		} else {
			l.queue = slices.Delete(l.queue, 0, 1)
		}
		in := l.beginLocked(t)
		l.mu.Unlock()
		if len(in) == 0 {
			close(t.done)
			continue
		}
		began := time.Now()
		l.take(t, in, l.cfg.Flush)
		took := time.Since(began)
		apart := len(in) > 1 && l.cfg.RetryIndividually != nil && t.err != nil && l.cfg.RetryIndividually(t.err) || len(in) == 1 && l.waits(t.err)
		if apart {
			l.part(t, len(in) == 1)
		}
		close(t.done)
		l.count(len(in), took, t.err != nil, apart)
	}
}

func (l *Batcher[In, Out]) count(inputs int, took time.Duration, failed, apart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := 0
	for size < len(Sizes) && inputs > Sizes[size] {
		size++
	}
	l.stats.Sizes[size]++
	l.stats.Inputs += uint64(inputs)
	l.stats.Time += took
	if l.failed = failed; failed {
		l.stats.Failed++
	}
	if apart {
		l.stats.Retried++
	}
}

// take carries what the trip has to carry, and sets its results.
func (l *Batcher[In, Out]) take(t *trip[In, Out], in []In, carry func(context.Context, []In) ([]Out, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			t.err = fmt.Errorf("a trip panicked: %v\n%s", p, debug.Stack())
		}
	}()
	out, err := carry(ctx, in)
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("a trip brought %d results for %d inputs", len(out), len(in))
	}
	if t.err = err; err != nil {
		return
	}
	for i := 0; len(out) < len(t.in); i++ { // room for those that left
		if t.left[i] {
			out = slices.Insert(out, i, *new(Out))
		}
	}
	t.out = out
}

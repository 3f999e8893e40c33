// Package batch lets concurrent callers share one round trip to the database (group commit).
//
// A transaction holds its row locks until its commit is on disk, so requests that update the same row would each wait
// for the disk in turn. A Batcher collects the inputs that arrive while a batch is in flight and flushes them together
// as the next batch. Packages limits, auth, catalog, runs and runs/jobs use it. It owns no table. PERFORMANCE.md has
// the measurements behind its rules.
package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"aiv/store"
)

// ErrOverloaded is returned when too many inputs wait already, in total or of one key.
var ErrOverloaded = errors.New("too many requests are waiting for the database")

// MaxRetries is the maximum number of concurrent retries of a Batcher, which uses that many connections and one more.
const MaxRetries = 3

// PartOf returns the part of maxWaiting, a quarter, that one account or credential may use.
func PartOf(maxWaiting int) int { return (maxWaiting + 3) / 4 }

// Config configures a Batcher.
type Config[In, Out any] struct {
	// Flush does the work of a batch in one round trip. It returns one result for each input, in the order of the
	// inputs.
	Flush func(ctx context.Context, in []In) ([]Out, error)

	// Timeout bounds a flush.
	Timeout time.Duration

	// MaxWaiting bounds the inputs that wait to be flushed; Do and Start refuse more with ErrOverloaded.
	MaxWaiting int

	// MaxWeight bounds the sum of the weights of a batch with more than one input. A nil Weight makes each input weigh
	// 1.
	Weight    func(In) int
	MaxWeight int

	// DropAbandoned drops inputs whose callers gave up before their batch started, or whose deadlines had passed by
	// then: a process that was stopped for long must not do what its clients have given up. Without it, they are
	// flushed all the same.
	DropAbandoned bool

	// RetryIndividually reports whether the inputs of a batch that failed with err are retried, the inputs of each key
	// separately. Then only the callers whose inputs caused the error get it. It must return false for an error that
	// leaves open whether the batch took effect, unless a second flush does no harm.
	RetryIndividually func(err error) bool

	// Retry flushes inputs of one key after their batch failed. It may wait longer for locks than Flush does, because
	// only inputs of that key wait for it. A nil Retry means Flush.
	Retry func(ctx context.Context, in []In) ([]Out, error)

	// Key returns what an input locks, as a comparable value. A nil Key gives each input a different key.
	Key func(In) any

	// MaxPerKey bounds the inputs of one key that wait; more are refused as well. 0 means MaxWaiting.
	MaxPerKey int
}

// A Batcher flushes inputs in batches, one batch at a time: a second one in flight would wait for the row locks of the
// first with half of the inputs. It needs no timer to fill a batch, because inputs collect while the previous batch is
// in flight.
//
// There is one fallback. If a batch fails and RetryIndividually allows it, the inputs of each key are retried by
// themselves, beside the batches that follow. While a key is being retried, further inputs of that key join its retry.
// A key that is locked by another session therefore delays one batch, and after that only its own inputs.
//
// A flush does not end with its callers' contexts: once it has started, its work is done.
type Batcher[In, Out any] struct {
	cfg   Config[In, Out]
	slots chan struct{} // one for each retry in flight

	mu       sync.Mutex
	running  bool // a goroutine flushes the queue; it ends when the queue is empty
	failed   bool // the latest batch failed
	queue    queue[In, Out]
	retrying map[any]queue[In, Out] // by key: what waits for the retry in flight
	waiting  int
	perKey   map[any]int // of waiting
	stats    Stats
}

// New returns a Batcher. An idle Batcher has no goroutine.
func New[In, Out any](cfg Config[In, Out]) *Batcher[In, Out] {
	if cfg.Weight == nil {
		cfg.Weight = func(In) int { return 1 }
	}
	return &Batcher[In, Out]{
		cfg: cfg, slots: make(chan struct{}, MaxRetries),
		retrying: make(map[any]queue[In, Out]), perKey: make(map[any]int),
	}
}

// Do adds in to the next batch and waits for its result, or for the end of ctx.
func (b *Batcher[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	s, err := b.Start(ctx, in)
	if err != nil {
		return out, err
	}
	return s.Wait(ctx)
}

// A Started is an input that was added to a batch. Its caller must call either Wait or Abandon, once.
type Started[In, Out any] struct {
	b *Batcher[In, Out]
	c *call[In, Out]
}

// Start adds in to the next batch.
func (b *Batcher[In, Out]) Start(ctx context.Context, in In) (Started[In, Out], error) {
	s, ok := b.enqueue(ctx, in, 1)
	if !ok {
		return s, ErrOverloaded
	}
	return s, nil
}

// TryStart adds in to the next batch, for a caller that may not need the result, if not half as many inputs wait as may:
// the other places are left to callers that do.
func (b *Batcher[In, Out]) TryStart(ctx context.Context, in In) (s Started[In, Out], ok bool) {
	return b.enqueue(ctx, in, 2)
}

// Abandon gives up the result. An input whose flush has not started is dropped, with DropAbandoned.
func (s Started[In, Out]) Abandon() { s.b.abandon(s.c) }

// Wait waits for the result, or for the end of ctx.
func (s Started[In, Out]) Wait(ctx context.Context) (out Out, err error) {
	b, c := s.b, s.c
	store.AddRoundTrip(ctx)
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
	}
	select {
	case <-c.done: // a result that exists is returned, even late
		return c.out, c.err
	default:
		b.abandon(c)
		return out, ctx.Err()
	}
}

// enqueue adds an input to the queue, or to the retry of its key, unless a part of the inputs that may wait do: all, or
// half of them if part is 2.
func (b *Batcher[In, Out]) enqueue(ctx context.Context, in In, part int) (s Started[In, Out], ok bool) {
	c := &call[In, Out]{in: in, done: make(chan struct{})}
	c.deadline, _ = ctx.Deadline()
	if b.cfg.Key != nil {
		c.key = b.cfg.Key(c.in)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting*part >= b.cfg.MaxWaiting || b.cfg.MaxPerKey > 0 && b.perKey[c.key]*part >= b.cfg.MaxPerKey {
		if part == 1 {
			b.stats.Overloaded++
		}
		return s, false
	}
	b.addWaiting(c.key, 1)
	if q, ok := b.retrying[c.key]; ok {
		b.retrying[c.key] = b.add(q, c)
		return Started[In, Out]{b, c}, true
	}
	b.queue = b.add(b.queue, c)
	b.start()
	return Started[In, Out]{b, c}, true
}

// abandon drops an input whose caller has given up, unless its flush has started. Such an input is not retried.
func (b *Batcher[In, Out]) abandon(c *call[In, Out]) {
	if !b.cfg.DropAbandoned {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.abandoned = true
	if c.batch != nil {
		c.batch.weight -= b.cfg.Weight(c.in)
		b.addWaiting(c.key, -1)
	}
}

// addWaiting counts n more waiting inputs of a key.
func (b *Batcher[In, Out]) addWaiting(key any, n int) {
	b.waiting += n
	if b.cfg.MaxPerKey == 0 {
		return
	}
	if b.perKey[key] += n; b.perKey[key] == 0 {
		delete(b.perKey, key)
	}
}

// Stats reports what a Batcher has done so far, and how many inputs wait. Retries are not counted as batches.
type Stats struct {
	Sizes      [len(Sizes) + 1]uint64 // batches with at most Sizes[i] inputs, and in the last element larger ones
	Inputs     uint64                 // that were flushed
	Time       time.Duration          // that batches took
	Failed     uint64                 // batches
	Retried    uint64                 // failed batches whose inputs were retried individually
	Overloaded uint64                 // inputs refused
	Waiting    int                    // inputs, now
}

// Sizes are the bounds by which batches are counted.
var Sizes = [...]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// Stats returns what b has done so far.
func (b *Batcher[In, Out]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Waiting = b.waiting
	return s
}

func (s *Stats) add(inputs int, took time.Duration, failed, retried bool) {
	size, _ := slices.BinarySearch(Sizes[:], inputs)
	s.Sizes[size]++
	s.Inputs += uint64(inputs)
	s.Time += took
	if failed {
		s.Failed++
	}
	if retried {
		s.Retried++
	}
}

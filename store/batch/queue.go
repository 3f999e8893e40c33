package batch

import "time"

// A call is an input and, before done is closed, its result. The other fields are guarded by the Batcher's mutex.
type call[In, Out any] struct {
	in        In
	key       any
	deadline  time.Time       // of the caller; zero: none
	batch     *batch[In, Out] // in which it waits; nil after that has started
	abandoned bool

	out  Out
	err  error
	done chan struct{}
}

func (c *call[In, Out]) end(out Out, err error) {
	c.out, c.err = out, err
	close(c.done)
}

// A batch is a set of calls that wait to be flushed together.
type batch[In, Out any] struct {
	calls   []*call[In, Out]
	weight  int       // of those that are not abandoned
	queued  time.Time // when it was made, which retries read
	delayed int       // how many of its first calls were split off an earlier batch
}

// A queue is a list of batches that wait. Calls are added to the last one.
type queue[In, Out any] []*batch[In, Out]

// add adds a call to the last batch of a queue, or to a new one if that would be too heavy.
func (b *Batcher[In, Out]) add(q queue[In, Out], c *call[In, Out]) queue[In, Out] {
	weight := b.cfg.Weight(c.in)
	if n := len(q); n == 0 || q[n-1].weight+weight > b.cfg.MaxWeight {
		q = append(q, &batch[In, Out]{queued: time.Now()})
	}
	t := q[len(q)-1]
	t.calls = append(t.calls, c)
	t.weight += weight
	c.batch = t
	return q
}

// begin ends the waiting of a batch and returns the calls to flush. It leaves out abandoned calls and, with
// DropAbandoned, those whose deadline has passed.
func (b *Batcher[In, Out]) begin(t *batch[In, Out]) []*call[In, Out] {
	now := time.Now()
	calls := make([]*call[In, Out], 0, len(t.calls))
	for _, c := range t.calls {
		c.batch = nil
		if c.abandoned {
			continue
		}
		b.addWaiting(c.key, -1)
		if !b.cfg.DropAbandoned || c.deadline.IsZero() || now.Before(c.deadline) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Up to alwaysTogether calls are flushed together in any case.
const alwaysTogether = 32

// size returns how many calls of the first batch are flushed now. Large batches are split 2:1, and the rest leads the
// next batch, so that no call is delayed twice. If all were flushed together, their callers would get their results
// together and send their next requests together, and the database would be idle in between. A batch is not split if
// others wait behind it, or if the latest batch failed: the next one may take long.
func (b *Batcher[In, Out]) size(t *batch[In, Out]) int {
	if len(b.queue) > 1 || b.failed {
		return len(t.calls)
	}
	return min(len(t.calls), max(alwaysTogether, len(t.calls)*2/3, t.delayed))
}

// split moves the calls of a batch from the n-th on into a batch that it returns.
func (b *Batcher[In, Out]) split(t *batch[In, Out], n int) *batch[In, Out] {
	rest := &batch[In, Out]{calls: t.calls[n:], delayed: len(t.calls) - n}
	for _, c := range rest.calls {
		c.batch = rest
		if !c.abandoned {
			rest.weight += b.cfg.Weight(c.in)
		}
	}
	t.calls = t.calls[:n]
	return rest
}

package batch

import (
	"slices"
	"time"
)

// batch is a set of inputs that are flushed together. All fields but its results are guarded by the Batcher's mutex.
type batch[In, Out any] struct {
	in        []In
	keys      []any // of the inputs
	weight    int
	queued    time.Time // when its first input was added
	started   bool
	dropped   map[int]bool // inputs abandoned before the flush, which are not part of it
	abandoned map[int]bool // inputs abandoned since, which are not retried

	// The results are set before done is closed.
	out  []Out
	err  error
	done chan struct{}

	rest    *batch[In, Out]     // after a split: the inputs from len(in) on
	delayed int                 // how many of its first inputs have been split off an earlier batch
	retries []position[In, Out] // after a failure: where each input is retried
}

// position locates an input.
type position[In, Out any] struct {
	batch *batch[In, Out]
	index int
}

// queue is a list of batches that have not started. Inputs are added to the last one.
type queue[In, Out any] []*batch[In, Out]

// next returns where input i has moved to, or nil if it has not moved.
func (t *batch[In, Out]) next(i int) (*batch[In, Out], int) {
	switch {
	case i >= len(t.in):
		return t.rest, i - len(t.in)
	case t.retries != nil:
		return t.retries[i].batch, t.retries[i].index
	}
	return nil, 0
}

// add appends an input to the last batch of the queue, or to a new one if that would be too heavy.
func (b *Batcher[In, Out]) add(q *queue[In, Out], in In, key any) (t *batch[In, Out], i int) {
	weight := b.cfg.Weight(in)
	if n := len(*q); n > 0 && (*q)[n-1].weight+weight <= b.cfg.MaxWeight {
		t = (*q)[n-1]
	} else {
		t = &batch[In, Out]{queued: time.Now(), done: make(chan struct{})}
		*q = append(*q, t)
	}
	t.in, t.keys = append(t.in, in), append(t.keys, key)
	t.weight += weight
	return t, len(t.in) - 1
}

// begin starts a batch and returns the inputs to flush.
func (b *Batcher[In, Out]) begin(t *batch[In, Out]) []In {
	t.started = true
	in := t.in
	if len(t.dropped) > 0 {
		in = nil
	}
	for i := range t.in {
		if t.dropped[i] {
			continue
		}
		b.wait(t.keys[i], -1)
		if len(t.dropped) > 0 {
			in = append(in, t.in[i])
		}
	}
	return in
}

// alwaysTogether is how many inputs are flushed together in any case.
const alwaysTogether = 32

// size returns how many inputs of the first batch are flushed now. Large batches are split 2:1, and the rest leads the next
// batch, so that no input is delayed twice. If all were flushed together, their callers would get their results together and
// send their next requests together, and the database would be idle in between. A batch is not split if others wait behind
// it, or if the latest batch failed: the next one may take long.
func (b *Batcher[In, Out]) size(t *batch[In, Out]) int {
	if len(b.queue) > 1 || b.failed {
		return len(t.in)
	}
	return min(len(t.in), max(alwaysTogether, len(t.in)*2/3, t.delayed))
}

// split moves the inputs of a batch from the n-th on into a batch that it returns.
func (b *Batcher[In, Out]) split(t *batch[In, Out], n int) *batch[In, Out] {
	rest := &batch[In, Out]{in: slices.Clone(t.in[n:]), keys: slices.Clone(t.keys[n:]), done: make(chan struct{})}
	rest.delayed = len(rest.in)
	for i := range rest.in {
		if t.dropped[n+i] {
			rest.dropped = with(rest.dropped, i)
		} else {
			rest.weight += b.cfg.Weight(rest.in[i])
		}
	}
	t.in, t.keys, t.rest = t.in[:n], t.keys[:n], rest
	return rest
}

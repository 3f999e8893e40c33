package batch

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// start makes sure that a goroutine flushes the queue.
func (b *Batcher[In, Out]) start() {
	if !b.running {
		b.running = true
		go b.run()
	}
}

// run flushes batches until the queue is empty. It yields once, so that callers that are runnable already can join the first
// batch: callers often come many at a time, after a batch of another Batcher or a network poll.
func (b *Batcher[In, Out]) run() {
	runtime.Gosched()
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.running = false
			b.mu.Unlock()
			return
		}
		t := b.queue[0]
		if n := b.size(t); n < len(t.in) {
			b.queue[0] = b.split(t, n)
		} else {
			b.queue = slices.Delete(b.queue, 0, 1)
		}
		in := b.begin(t)
		b.mu.Unlock()

		if len(in) > 0 {
			began := time.Now()
			b.flush(t, in, b.cfg.Flush)
			b.count(t, len(in), time.Since(began))
		}
		close(t.done)
	}
}

// count records the end of a batch, and arranges its retries if it failed.
func (b *Batcher[In, Out]) count(t *batch[In, Out], inputs int, took time.Duration) {
	mayRetry := inputs > 1 || b.cfg.Retry != nil
	retry := t.err != nil && mayRetry && b.cfg.RetryIndividually != nil && b.cfg.RetryIndividually(t.err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.add(inputs, took, t.err != nil, retry)
	b.failed = t.err != nil
	if retry {
		b.retry(t)
	}
}

// flush does the work of a batch and sets its results.
func (b *Batcher[In, Out]) flush(t *batch[In, Out], in []In, work func(context.Context, []In) ([]Out, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			t.err = fmt.Errorf("flushing a batch panicked: %v\n%s", p, debug.Stack())
		}
	}()
	out, err := work(ctx, in)
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("a flush returned %d results for %d inputs", len(out), len(in))
	}
	if t.err = err; err != nil {
		return
	}
	for i := 0; len(out) < len(t.in); i++ { // align the results with in
		if t.dropped[i] {
			out = slices.Insert(out, i, *new(Out))
		}
	}
	t.out = out
}

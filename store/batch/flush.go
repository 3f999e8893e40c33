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

// run flushes batches until the queue is empty. It yields once, so that callers that are runnable already can join the
// first batch: callers often come many at a time, after a batch of another Batcher or a network poll.
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
		if n := b.size(t); n < len(t.calls) {
			b.queue[0] = b.split(t, n)
		} else {
			b.queue = slices.Delete(b.queue, 0, 1)
		}
		calls := b.begin(t)
		b.mu.Unlock()

		if len(calls) > 0 {
			b.runBatch(calls)
		}
	}
}

// runBatch flushes calls. If that fails, they are retried or get the error.
func (b *Batcher[In, Out]) runBatch(calls []*call[In, Out]) {
	began := time.Now()
	out, err := b.flush(calls, b.cfg.Flush)
	took := time.Since(began)
	mayRetry := len(calls) > 1 || b.cfg.Retry != nil
	retry := err != nil && mayRetry && b.cfg.RetryIndividually != nil && b.cfg.RetryIndividually(err)
	b.mu.Lock()
	b.stats.add(len(calls), took, err != nil, retry)
	b.failed = err != nil
	if retry {
		b.retry(calls)
	}
	b.mu.Unlock()
	if !retry {
		endAll(calls, out, err)
	}
}

// flush does the work of a batch and returns its results.
func (b *Batcher[In, Out]) flush(calls []*call[In, Out], work func(context.Context, []In) ([]Out, error)) (out []Out, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("flushing a batch panicked: %v\n%s", p, debug.Stack())
		}
	}()
	in := make([]In, len(calls))
	for i, c := range calls {
		in[i] = c.in
	}
	out, err = work(ctx, in)
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("a flush returned %d results for %d inputs", len(out), len(in))
	}
	return out, err
}

// endAll gives calls their results, or the error.
func endAll[In, Out any](calls []*call[In, Out], out []Out, err error) {
	for i, c := range calls {
		if err != nil {
			c.end(*new(Out), err)
		} else {
			c.end(out[i], nil)
		}
	}
}

package batch

import (
	"context"
	"fmt"
	"time"
)

// retry moves the inputs of a failed batch to the retries of their keys. Its caller holds the mutex.
func (b *Batcher[In, Out]) retry(t *batch[In, Out]) {
	t.retries = make([]position[In, Out], len(t.in))
	for i, key := range t.keys {
		if t.dropped[i] || t.abandoned[i] {
			continue
		}
		if b.cfg.Key == nil {
			key = new(byte) // differs from all others
		}
		q, already := b.retrying[key]
		p := &t.retries[i]
		p.batch, p.index = b.add(&q, t.in[i], key)
		b.retrying[key] = q
		b.wait(key, 1)
		if !already {
			go b.retryKey(key)
		}
	}
}

// retryKey flushes what waits for a key until a flush succeeds. What waits then goes back to the queue. Inputs that have waited
// for longer than a flush may take fail: while many keys are locked, each waits for one of few retries.
func (b *Batcher[In, Out]) retryKey(key any) {
	for {
		b.slots <- struct{}{}
		more := b.retryOnce(key)
		<-b.slots
		if !more {
			return
		}
	}
}

// retryOnce flushes one batch of the key and reports whether the next one is to be retried, too.
func (b *Batcher[In, Out]) retryOnce(key any) (more bool) {
	b.mu.Lock()
	q := b.retrying[key]
	t := q[0]
	b.retrying[key] = q[1:]
	in := b.begin(t)
	b.mu.Unlock()

	work := b.cfg.Retry
	if work == nil {
		work = b.cfg.Flush
	}
	switch {
	case len(in) > 0 && time.Since(t.queued) >= b.cfg.Timeout:
		t.err = fmt.Errorf("waiting to be retried: %w", context.DeadlineExceeded)
	case len(in) > 0:
		b.flush(t, in, work)
	}
	close(t.done)

	b.mu.Lock()
	defer b.mu.Unlock()
	q = b.retrying[key]
	if len(q) > 0 && (t.err != nil || len(in) == 0) {
		return true
	}
	delete(b.retrying, key)
	if len(q) > 0 {
		b.queue = append(b.queue, q...)
		b.start()
	}
	return false
}

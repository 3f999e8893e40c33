package batch

import (
	"context"
	"fmt"
	"time"
)

// retry moves the calls of a failed batch to the retries of their keys. Its caller holds the mutex.
func (b *Batcher[In, Out]) retry(calls []*call[In, Out]) {
	for _, c := range calls {
		if c.abandoned {
			continue
		}
		if b.cfg.Key == nil {
			c.key = new(byte) // differs from all others
		}
		q, already := b.retrying[c.key]
		b.retrying[c.key] = b.add(q, c)
		b.addWaiting(c.key, 1)
		if !already {
			go b.retryKey(c.key)
		}
	}
}

// retryKey flushes the calls of a key until a flush succeeds. The rest then goes back to the queue. Calls that have
// waited for longer than a flush may take fail: while many keys are locked, each waits for one of few retries.
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

// retryOnce flushes one batch of the key and reports whether the next one must also be retried.
func (b *Batcher[In, Out]) retryOnce(key any) (more bool) {
	b.mu.Lock()
	q := b.retrying[key]
	t := q[0]
	b.retrying[key] = q[1:]
	calls := b.begin(t)
	b.mu.Unlock()

	work := b.cfg.Retry
	if work == nil {
		work = b.cfg.Flush
	}
	var out []Out
	var err error
	switch {
	case len(calls) == 0: // all were abandoned
	case time.Since(t.queued) >= b.cfg.Timeout:
		err = fmt.Errorf("waiting to be retried: %w", context.DeadlineExceeded)
	default:
		out, err = b.flush(calls, work)
	}
	endAll(calls, out, err)

	b.mu.Lock()
	defer b.mu.Unlock()
	q = b.retrying[key]
	if len(q) > 0 && err != nil {
		return true
	}
	delete(b.retrying, key)
	if len(q) > 0 {
		b.queue = append(b.queue, q...)
		b.start()
	}
	return false
}

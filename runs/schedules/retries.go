package schedules

import (
	"sync"
	"time"

	"aiv/store"
)

// How long after a failure something is tried again. The time doubles with each failure.
const (
	minRetry = time.Second
	maxRetry = 10 * time.Second
)

// retries remembers what has failed, by an id, and when it is tried again.
type retries struct {
	mu    sync.Mutex
	after map[store.ID]retry
}

type retry struct {
	at   time.Time
	wait time.Duration // before at
}

// failed notes a failure and returns the time until the next try.
func (r *retries) failed(id store.ID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.after == nil {
		r.after = make(map[store.ID]retry)
	}
	// An id without a failure has the wait 0.
	wait := max(minRetry, min(2*r.after[id].wait, maxRetry))
	r.after[id] = retry{time.Now().Add(wait), wait}
	return wait
}

// succeeded forgets the failures of an id.
func (r *retries) succeeded(id store.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.after, id)
}

// waiting returns the ids that must not be tried yet. It forgets ids whose latest failure is long past.
func (r *retries) waiting() []store.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, ids := time.Now(), []store.ID{}
	for id, retry := range r.after {
		switch {
		case retry.at.After(now):
			ids = append(ids, id)
		case now.Sub(retry.at) > time.Minute:
			delete(r.after, id)
		}
	}
	return ids
}

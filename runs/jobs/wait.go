package jobs

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// pollEvery is the interval at which a process with waiting claims looks for claimable jobs, with one query for all
// claims.
const pollEvery = 200 * time.Millisecond

// waiters are the claims that wait for jobs. They use no connection.
//
// When there are jobs, a poll wakes one claim for each provider, and a claim that gets jobs wakes two more. So a few
// jobs cost a few claims, however many wait, and many jobs are handed out in a few rounds.
type waiters struct {
	mu      sync.Mutex
	waiting list.List // of *waiter, the one that has waited longest first
}

type waiter struct {
	providers []string                // nil: all
	wake      chan func(*waiter) bool // receives a test of which other claims could be woken instead; buffers one
	awake     bool                    // it claims now
}

// Stop ends waiting claims. Later claims do not wait.
func (d *Dispatcher) Stop() { d.stop() }

// add adds a claim that sleeps, at the end.
func (w *waiters) add(self *waiter) *list.Element {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting.PushBack(self)
}

func (w *waiters) remove(element *list.Element) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting.Remove(element)
}

// sleep lets a claim that found no jobs be woken again. It keeps its place.
func (w *waiters) sleep(self *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	self.awake = false
}

// len returns how many claims wait.
func (w *waiters) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting.Len()
}

// wake wakes up to n of the claims that match.
func (w *waiters) wake(n int, matches func(*waiter) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := w.waiting.Front(); e != nil && n > 0; e = e.Next() {
		if other := e.Value.(*waiter); !other.awake && matches(other) {
			other.awake = true
			other.wake <- matches // cannot block: it sleeps only after it has received the one before
			n--
		}
	}
}

// poll wakes waiting claims if there are jobs for them. It takes no lock unless runs or retries wait to be admitted.
func (d *Dispatcher) poll(ctx context.Context) error {
	if d.waiters.len() == 0 {
		return nil
	}
	var backlog bool
	var providers []string
	if err := d.cfg.Pool.QueryRow(ctx, claimable, d.cfg.Outage.Reachable(citusClaimable), nil).Scan(&backlog, &providers); err != nil {
		return err
	}
	// Admitting needs the lock of claims, so it is left out if nothing waits. The providers are then read again.
	if backlog {
		if err := d.admitBacklog(ctx); err != nil {
			return err
		}
		if err := d.cfg.Pool.QueryRow(ctx, claimable, d.cfg.Outage.Reachable(citusClaimable), nil).Scan(&backlog, &providers); err != nil {
			return err
		}
	}
	// One claim for each provider; it wakes others if it gets jobs.
	for _, p := range providers {
		d.waiters.wake(1, func(other *waiter) bool { return accepts(other.providers, p) })
	}
	return nil
}

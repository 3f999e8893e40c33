package jobs

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// pollEvery is the interval at which a process with waiting claims looks for claimable jobs, with one query for all claims.
const pollEvery = 200 * time.Millisecond

// waiters are the claims that wait for jobs. They use no connection.
//
// When there are jobs, a poll wakes one claim for each provider, and each of these that gets jobs wakes two more. So a few jobs
// cost a few claims, however many wait, and many jobs are handed out in a few rounds.
type waiters struct {
	mu      sync.Mutex
	waiting list.List // of *waiter, the one that has waited longest first
	closed  chan struct{}
	close   sync.Once
}

type waiter struct {
	providers []string
	wake      chan struct{} // buffers one
	awake     bool          // it claims now
}

func (w *waiters) init() { w.closed = make(chan struct{}) }

// Claim hands out jobs. If there are none, it waits for the first one until r.Wait is over, ctx is done or Stop is called.
func (d *Dispatcher) Claim(ctx context.Context, r *ClaimRequest) ([]Job, error) {
	if r.Providers != nil && len(r.Providers) == 0 {
		r.Wait = min(r.Wait, 0)
	}
	jobs, err := d.claims.Do(ctx, r)
	if err != nil || len(jobs) > 0 || r.Wait <= 0 {
		return jobs, err
	}
	self := &waiter{providers: r.Providers, wake: make(chan struct{}, 1)}
	place := d.waiters.add(self)
	defer d.waiters.remove(place)
	end := time.NewTimer(r.Wait)
	defer end.Stop()
	for {
		select {
		case <-self.wake:
		case <-end.C:
			return nil, nil
		case <-d.waiters.closed:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		jobs, err := d.claims.Do(ctx, r)
		if len(jobs) > 0 {
			d.waiters.wake(2, func(other *waiter) bool {
				return slices.ContainsFunc(jobs, func(j Job) bool { return accepts(other.providers, j.Provider) })
			})
		}
		if err != nil || len(jobs) > 0 {
			return jobs, err
		}
		d.waiters.sleep(self)
	}
}

// Stop ends waiting claims. Later ones do not wait.
func (d *Dispatcher) Stop() { d.waiters.close.Do(func() { close(d.waiters.closed) }) }

func (w *waiters) add(self *waiter) *list.Element {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting.PushBack(self)
}

func (w *waiters) remove(place *list.Element) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting.Remove(place)
}

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
			other.wake <- struct{}{} // cannot block: it sleeps only after it has received the one before
			n--
		}
	}
}

// poll wakes waiting claims if there are jobs for them.
func (d *Dispatcher) poll(ctx context.Context) error {
	if d.waiters.len() == 0 {
		return nil
	}
	var backlog bool
	var providers []string
	if err := d.cfg.Pool.QueryRow(ctx, claimable, d.outage.Reachable(citusClaimable), nil).Scan(&backlog, &providers); err != nil {
		return err
	}
	if backlog {
		if err := d.queueBacklog(ctx); err != nil {
			return err
		}
		if err := d.cfg.Pool.QueryRow(ctx, claimable, d.outage.Reachable(citusClaimable), nil).Scan(&backlog, &providers); err != nil {
			return err
		}
	}
	for _, p := range providers {
		d.waiters.wake(1, func(other *waiter) bool { return accepts(other.providers, p) })
	}
	return nil
}

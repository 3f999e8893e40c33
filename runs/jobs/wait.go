package jobs

import (
	"context"
	"slices"
	"sync"
	"time"

	"aiv/store"
)

// pollEvery is the interval at which a process with waiting claims looks for claimable jobs, with one query for all claims.
const pollEvery = 200 * time.Millisecond

// waiters are the claims that wait for jobs. They use no connection.
type waiters struct {
	mu      sync.Mutex
	waiting map[*waiter]struct{}
	closed  chan struct{}
	close   sync.Once
}

type waiter struct {
	providers []string
	wake      chan struct{} // buffers one
}

func (w *waiters) init() {
	w.waiting, w.closed = make(map[*waiter]struct{}), make(chan struct{})
}

// Claim hands out jobs. If there are none, it waits for the first one until r.Wait is over, ctx is done or Stop is called.
func (d *Dispatcher) Claim(ctx context.Context, r *ClaimRequest) ([]Job, error) {
	if r.Providers != nil && len(r.Providers) == 0 {
		r.Wait = min(r.Wait, 0)
	}
	self := &waiter{providers: r.Providers, wake: make(chan struct{}, 1)}
	end := time.NewTimer(r.Wait)
	defer end.Stop()
	if r.Wait > 0 {
		d.waiters.add(self)
		defer d.waiters.remove(self)
	}
	for {
		jobs, err := d.claims.Do(ctx, r)
		if err != nil || len(jobs) > 0 || r.Wait <= 0 {
			return jobs, err
		}
		select {
		case <-self.wake:
		case <-end.C:
			return nil, nil
		case <-d.waiters.closed:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Stop ends waiting claims. Later ones do not wait.
func (d *Dispatcher) Stop() { d.waiters.close.Do(func() { close(d.waiters.closed) }) }

func (w *waiters) add(self *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[self] = struct{}{}
}

func (w *waiters) remove(self *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, self)
}

// len returns how many claims wait.
func (w *waiters) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// wakeFor wakes the claims that accept jobs of one of the providers.
func (w *waiters) wakeFor(providers []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for self := range w.waiting {
		accepts := (&demand{providers: self.providers}).accepts
		if slices.ContainsFunc(providers, accepts) {
			select {
			case self.wake <- struct{}{}:
			default: // it has been woken already
			}
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
	if err := d.cfg.Pool.QueryRow(ctx, claimable, store.OnCitus(citusClaimable), nil).Scan(&backlog, &providers); err != nil {
		return err
	}
	if backlog {
		if err := d.queueBacklog(ctx); err != nil {
			return err
		}
		if err := d.cfg.Pool.QueryRow(ctx, claimable, store.OnCitus(citusClaimable), nil).Scan(&backlog, &providers); err != nil {
			return err
		}
	}
	if len(providers) > 0 {
		d.waiters.wakeFor(providers)
	}
	return nil
}

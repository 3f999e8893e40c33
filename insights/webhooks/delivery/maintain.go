package delivery

import (
	"context"
	"math/rand/v2"
	"time"

	"aiv/insights/webhooks"
)

// runPurge deletes what is older than webhooks.Retention. Every process does so; several may run at once.
func (d *Dispatcher) runPurge(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, purgeEvery/2+rand.N(purgeEvery))
		if ctx.Err() != nil {
			return
		}
		if _, err := webhooks.Purge(ctx, d.cfg.Pool, webhooks.Retention); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("webhooks: cannot delete old events; retrying", "error", err)
		}
	}
}

// runOutage checks every second whether unreachable servers of a cluster are reachable again, and causes the outcomes that wait for
// them to be written. It has a separate goroutine, because an unresponsive server would delay other work.
func (d *Dispatcher) runOutage(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, time.Second)
		if err := d.outage.Update(ctx); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("webhooks: cannot look for unreachable servers; retrying", "error", err)
			continue
		}
		d.mu.Lock()
		if len(d.outcomes) > 0 {
			notify(d.commit)
		}
		d.mu.Unlock()
	}
}

// sleep waits for a time or until ctx ends.
func sleep(ctx context.Context, t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

package delivery

import (
	"context"
	"time"
)

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

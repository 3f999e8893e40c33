package delivery

import (
	"context"
	"fmt"
	"time"

	"aiv/store/task"
)

// Tasks returns the background work of a dispatcher that is done at intervals. It must run beside Run, until the same
// context is done. Rounds and the writing of outcomes are loops of Run: they wait for events of the
// process, and the latter outlasts that context.
//
// Both tasks are prompt: a lease must be renewed in time, and outcomes wait for servers that are reachable again. They
// are two, because an unresponsive server would delay renewals.
//
// Renewals may end first, because no attempt is started that the lease of its account does not cover (see
// turns.nextOf), and an outcome is written only if no other process has made the attempt.
func (d *Dispatcher) Tasks() []task.Task {
	renew := func(ctx context.Context) error {
		return d.outage.Retry(ctx, func() error { return d.renew(ctx) })
	}
	return []task.Task{
		{Name: "renew_webhook_leases", Every: d.renewEvery, Prompt: true, Timeout: d.leaseTime, Run: renew},
		{Name: "check_webhook_servers", Every: time.Second, Prompt: true, Timeout: d.leaseTime, Run: d.checkServers},
	}
}

// checkServers checks whether unreachable servers of a cluster are reachable again, and causes the outcomes that wait
// for them to be written.
func (d *Dispatcher) checkServers(ctx context.Context) error {
	if err := d.outage.Update(ctx); err != nil {
		return fmt.Errorf("look for unreachable servers: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.outcomes) > 0 {
		notify(d.commit)
	}
	return nil
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

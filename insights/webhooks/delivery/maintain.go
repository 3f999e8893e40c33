package delivery

import (
	"context"
	"time"

	"aiv/store/task"
)

// Tasks returns the background work of a dispatcher. After the tasks have ended, End ends the deliveries.
//
// All tasks are prompt: events are to be delivered soon, a lease must be renewed in time, and outcomes wait for servers
// that are reachable again. An unresponsive server delays only the tasks that need it.
//
// Renewals may end first, because no attempt is started that the lease of its account does not cover (see
// turns.nextOf), and an outcome is written only if no other process has made the attempt.
func (d *Dispatcher) Tasks() []task.Task {
	return []task.Task{
		d.task("poll_webhooks", pollEvery, nil, func(ctx context.Context) error { return d.round(ctx, true) }),
		d.task("read_webhook_deliveries", time.Second, d.nextRound, func(ctx context.Context) error { return d.round(ctx, false) }),
		d.writeTask(),
		d.task("renew_webhook_leases", d.renewEvery, nil, d.renew),
	}
}

// writeTask returns the task that writes outcomes: at once, or at an interval where they could not be written before.
func (d *Dispatcher) writeTask() task.Task {
	return d.task("write_webhook_outcomes", time.Second, d.commit, d.writeOutcomes)
}

// task returns a task whose run is repeated at once if it has found that a server of the cluster is unreachable.
func (d *Dispatcher) task(name string, every time.Duration, wake <-chan struct{}, run func(context.Context) error) task.Task {
	retry := func(ctx context.Context) error {
		return d.cfg.Outage.Retry(ctx, func() error { return run(ctx) })
	}
	return task.Task{Name: name, Every: every, Prompt: true, Wake: wake, Timeout: d.leaseTime, Run: retry}
}

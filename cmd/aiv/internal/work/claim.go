package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// claimAll claims jobs and starts their execution until ctx is done. It claims no more than it can start. A result that
// waits for room in the queue keeps its slot: while settlements fail, claims stop.
func (w *worker) claimAll(ctx context.Context) {
	// A slot is held from before a job is claimed until its result is queued, or settled if it is throttled.
	slots := make(chan struct{}, w.cfg.Parallel)
	wait := backoff{}
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return
		}
		free := 1
		for free < maxJobs && len(slots) < cap(slots) {
			slots <- struct{}{} // cannot block: only this goroutine fills it
			free++
		}
		tasks, err := w.claim(ctx, free)
		// Free the slots for which there was no job.
		for range free - len(tasks) {
			<-slots
		}
		if err != nil {
			if ctx.Err() != nil || w.refused(err) {
				return
			}
			w.cfg.Log.Warn("cannot claim jobs; retrying", "error", err)
			wait.sleep(ctx)
			continue
		}
		// A success starts the waits again from the shortest.
		wait = backoff{}
		w.claimed(tasks)
		for _, t := range tasks {
			w.queueing.Go(func() {
				defer func() { <-slots }()
				if s, ok := w.execute(ctx, t); ok {
					w.results <- s
					if s.outcome == "throttled" {
						<-t.ctx.Done() // until it is settled: a claim before that would get jobs of the provider
					}
				} else {
					w.release(t)
				}
			})
		}
	}
}

// execute executes a job and returns its settlement, or false if its lease is lost.
func (w *worker) execute(ctx context.Context, t *task) (settlement, bool) {
	if ctx.Err() != nil {
		return newSettlement(t, Released{}), true // claimed while the worker was asked to end
	}
	o := w.cfg.Executor.Execute(t.ctx, t.Job)
	// Another worker may have the job now, or it was canceled.
	if context.Cause(t.ctx) == errLost {
		return settlement{}, false
	}
	bare := o
	if n, ok := o.(Noted); ok {
		bare = n.Outcome
	}
	if _, ok := bare.(Completed); !ok && t.ctx.Err() != nil {
		return newSettlement(t, Released{}), true // a failure may be due to the end of the worker
	}
	switch b := bare.(type) {
	// Fatal and Unavailable end the worker. Their jobs are settled like others.
	case Fatal:
		w.fail(b.Err)
	case Unavailable:
		p := t.Model.Provider
		w.fail(fmt.Errorf("provider %s is unavailable (%s): %s It is paused; correct the cause, then run aiv providers resume %s -note TEXT",
			p, b.Reason, b.Message, p))
	}
	return newSettlement(t, o), true
}

// claimed logs the jobs of a claim.
func (w *worker) claimed(tasks []*task) {
	for part := range slices.Chunk(attempts(tasks), maxLogged) {
		w.cfg.Log.Info("claimed", "jobs", len(part), "attempts", part)
	}
}

// claim claims jobs. A claim that waits for jobs is abandoned when ctx is done; jobs handed out to it just then are
// handed out again when their leases end. While jobs wait, the first claim gets them, which is not abandoned.
func (w *worker) claim(ctx context.Context, limit int) ([]*task, error) {
	tasks, err := w.claimWithin(context.WithoutCancel(ctx), limit, 0)
	if err != nil || len(tasks) > 0 {
		return tasks, err
	}
	return w.claimWithin(ctx, limit, claimWait)
}

// claimWithin claims up to limit jobs, and waits up to wait for the first one.
func (w *worker) claimWithin(ctx context.Context, limit int, wait time.Duration) ([]*task, error) {
	var jobs []json.RawMessage
	err := w.client.call(ctx, wait+callTime, "/claim", map[string]any{
		"limit": limit, "lease_seconds": int(w.cfg.Lease / time.Second), "providers": w.cfg.Providers,
		"wait_seconds": int(wait / time.Second),
	}, &jobs)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	tasks := make([]*task, 0, len(jobs))
	// Jobs beyond the limit have no slots. They are dropped, and their leases expire.
	for _, raw := range jobs[:min(len(jobs), limit)] {
		j := Job{Raw: raw, ReceivedAt: now}
		if err := json.Unmarshal(raw, &j); err != nil {
			return nil, fmt.Errorf("the dispatcher sent an invalid job: %w", err)
		}
		// ClaimedAt is by the database's clock, as LeaseUntil is.
		j.ClaimedAt = j.LeaseUntil.Add(-w.cfg.Lease)
		tasks = append(tasks, &task{Job: j})
	}
	w.hold(tasks, now.Add(w.cfg.Lease))
	return tasks, nil
}

// hold records leases that last until end. The worker loses those that it cannot renew: the dispatcher, which it may
// not reach, hands their jobs out again.
func (w *worker) hold(tasks []*task, end time.Time) {
	var earlier []*task // attempts of the same jobs
	w.mu.Lock()
	for _, t := range tasks {
		if other := w.held[t.ID]; other != nil {
			earlier = append(earlier, other)
		}
		w.held[t.ID] = t
		// hard, and not the context of the claim: jobs in progress may go on when claiming ends.
		t.ctx, t.cancel = context.WithCancelCause(w.hard)
		t.end = time.AfterFunc(time.Until(end), func() { w.lose(t, "lost") })
	}
	w.mu.Unlock()
	for _, t := range earlier {
		w.lose(t, "lost")
	}
}

// release ends the renewal of a job's lease.
func (w *worker) release(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.end.Stop()
	t.cancel(nil)
	if w.held[t.ID] == t { // and not a later attempt
		delete(w.held, t.ID)
	}
}

package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A settlement is an outcome as it is sent.
type settlement struct {
	task    *task
	outcome string
	failure failure // of the outcomes failed and retry; the message of throttled; of unavailable the reason and the message
	attrs   []any   // of its line in the log
	body    json.RawMessage
}

// maxBytes bounds what several results of a request take. The dispatcher waits 20 s for a body: a larger request would
// fail again and again on a slow connection. Many proxies accept no more than 1 MiB by default.
const maxBytes = 1_000_000

// settleAll settles the results, those that have collected in one request, until there are no more. It returns when all
// are settled or given up.
func (w *worker) settleAll(ctx context.Context) {
	defer w.apart.Wait()
	// A batch is sent as soon as the queue is empty. Results that come in meanwhile make the next one.
	var batch []settlement
	size := 0
	flush := func() {
		w.settle(ctx, batch, false)
		batch, size = nil, 0
	}
	for s := range w.results {
		// A single result may be larger than maxBytes.
		if len(batch) > 0 && size+len(s.body) > maxBytes {
			flush()
		}
		batch, size = append(batch, s), size+len(s.body)
		if len(batch) == maxJobs || len(w.results) == 0 {
			flush()
		}
	}
}

// settle reports jobs until the dispatcher has answered. If several are refused together, each is sent alone, so that
// one answer that is not valid fails no other job. What a proxy refuses is sent again, so that no job fails because of
// it. apart is whether others do not wait for these jobs; if they do, settle may return while settleApart goes on.
func (w *worker) settle(ctx context.Context, batch []settlement, apart bool) {
	bodies := make([]json.RawMessage, len(batch))
	for i := range batch {
		bodies[i] = batch[i].body
	}
	var wait backoff
	for {
		var states []struct{ State string }
		err := w.client.call(ctx, settleCall, "/settle", map[string]any{"jobs": bodies}, &states)
		if err == nil && len(states) != len(batch) {
			err = fmt.Errorf("the response has the states of %d jobs instead of %d", len(states), len(batch))
		}
		e, refused := errors.AsType[*statusError](err)
		invalid := refused && (e.status == http.StatusBadRequest || e.status == http.StatusRequestEntityTooLarge)
		foreign := refused && e.problem.Code == "" // a proxy's response, which says nothing about the answers
		switch {
		case err == nil:
			for i, s := range batch {
				w.settled(s, states[i].State)
			}
			return
		case invalid && len(batch) > 1:
			for i := range batch {
				w.settle(ctx, batch[i:i+1], apart)
			}
			return
		// An answer that the dispatcher does not accept fails its job. The failure is valid, so the recursion ends.
		case invalid && !foreign && batch[0].outcome == "completed":
			s := newSettlement(batch[0].task, invalidAnswer(e.faults()))
			s.attrs = batch[0].attrs
			w.settle(ctx, []settlement{s}, apart)
			return
		case !foreign && w.refused(err) || ctx.Err() != nil:
			w.abandon(batch, err)
			return
		}
		w.cfg.Log.Warn("cannot settle jobs; retrying", "jobs", len(batch), "error", err)
		if !apart && isUnavailable(err) && w.settleApart(ctx, batch) {
			return
		}
		wait.sleep(ctx)
	}
}

// settleApart settles the jobs of each account in the background: on a cluster, the server of one account's data may be
// lost, and results of others must not wait for it until their leases end. It returns false if too many wait so already.
func (w *worker) settleApart(ctx context.Context, batch []settlement) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	// When the server is lost, the worker has at most this many of its jobs: those in progress and those in the queue. If
	// there are more, the dispatcher settles nothing, and further jobs would be executed in vain.
	if w.settledApart+len(batch) > 2*w.cfg.Parallel {
		return false
	}
	w.settledApart += len(batch)
	accounts := make(map[string][]settlement)
	for _, s := range batch {
		accounts[s.task.AccountID] = append(accounts[s.task.AccountID], s)
	}
	for _, of := range accounts {
		w.apart.Go(func() {
			w.settle(ctx, of, true)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.settledApart -= len(of)
		})
	}
	return true
}

// abandon gives up settling jobs because of err.
func (w *worker) abandon(batch []settlement, err error) {
	tasks := make([]*task, len(batch))
	for i, s := range batch {
		tasks[i] = s.task
		// From here on the lease is not renewed.
		w.release(s.task)
	}
	for part := range slices.Chunk(attempts(tasks), maxLogged) {
		w.cfg.Log.Error("jobs were not settled; they are handed out again when their leases end",
			"jobs", len(part), "attempts", part, "error", err)
	}
	w.fail(errors.New("not all jobs were settled; see the log"))
}

// settled logs a job once the dispatcher has answered. A state other than settled means that the outcome came too
// late.
func (w *worker) settled(s settlement, state string) {
	w.release(s.task)
	line := []any{"id", s.task.ID, "attempt", s.task.Attempt, "outcome", s.outcome, "state", state}
	if s.failure.Code != "" {
		line = append(line, "code", s.failure.Code)
	}
	if s.failure != (failure{}) {
		line = append(line, "message", s.failure.Message)
	}
	w.cfg.Log.Info("job", append(line, s.attrs...)...)
}

// renew renews the leases of all held jobs, well before they end, until ctx is done. Those whose renewal failed are
// tried again between the others.
func (w *worker) renew(ctx context.Context) {
	// A third, so that a renewal can fail and be tried again before the lease ends.
	every := w.cfg.Lease / 3
	next := time.NewTimer(every)
	defer next.Stop()
	var round time.Time // when the renewal of all jobs began
	var due []attempt   // of them, those that are not renewed
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		if len(due) == 0 || time.Since(round) >= every {
			w.mu.Lock()
			due = attempts(slices.Collect(maps.Values(w.held)))
			w.mu.Unlock()
			round = time.Now()
		}
		var err error
		due, err = w.renewOnce(ctx, due)
		// The next round begins on time, or at once if this one took longer.
		next.Reset(time.Until(round.Add(every)))
		if err != nil && ctx.Err() == nil && !w.refused(err) {
			w.cfg.Log.Warn("cannot renew leases; retrying", "jobs", len(due), "error", err)
			next.Reset(min(every, time.Second))
		}
	}
}

// renewOnce renews the leases of jobs, and returns the jobs whose request failed, with the last error. Its requests are
// sent at the same time: if several got no answer in turn, the leases of the last ones would end meanwhile. What the
// dispatcher cannot renew together is sent again for each account.
func (w *worker) renewOnce(ctx context.Context, jobs []attempt) (failed []attempt, err error) {
	var mu sync.Mutex
	var requests sync.WaitGroup
	var send func(part []attempt)
	send = func(part []attempt) {
		var states []struct {
			ID, State string
			Attempt   int64
		}
		// The lease is counted from before the request, so it ends here no later than at the dispatcher.
		sent := time.Now()
		body := map[string]any{"lease_seconds": int(w.cfg.Lease / time.Second), "jobs": part}
		e := w.client.call(ctx, min(w.cfg.Lease/3, callTime), "/heartbeat", body, &states)
		if e == nil {
			for _, s := range states {
				w.renewed(s.ID, s.Attempt, s.State, sent.Add(w.cfg.Lease))
			}
			return
		}
		if accounts := w.byAccount(part); isUnavailable(e) && len(accounts) > 1 {
			for _, of := range accounts {
				requests.Go(func() { send(of) })
			}
			return
		}
		mu.Lock()
		defer mu.Unlock()
		failed, err = append(failed, part...), e
	}
	for part := range slices.Chunk(jobs, maxJobs) {
		requests.Go(func() { send(part) })
	}
	requests.Wait()
	return failed, err
}

// byAccount returns the jobs by the account that they belong to. Jobs that are no longer held are left out.
func (w *worker) byAccount(jobs []attempt) map[string][]attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	accounts := make(map[string][]attempt)
	for _, j := range jobs {
		if t := w.held[j.ID]; t != nil {
			accounts[t.AccountID] = append(accounts[t.AccountID], j)
		}
	}
	return accounts
}

// renewed records the state of a lease, and its end if it is held.
func (w *worker) renewed(id string, attempt int64, state string, end time.Time) {
	w.mu.Lock()
	t := w.held[id]
	known := t != nil && t.Attempt == attempt
	if known && state == "held" {
		t.end.Reset(time.Until(end))
	}
	w.mu.Unlock()
	if known && state != "held" {
		w.lose(t, state)
	}
}

// lose ends the execution of a job that the worker no longer has.
func (w *worker) lose(t *task, state string) {
	t.once.Do(func() {
		w.cfg.Log.Info("job", "id", t.ID, "attempt", t.Attempt, "state", state)
		t.cancel(errLost)
	})
}

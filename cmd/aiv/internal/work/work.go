// Package work is a worker for any program: it claims jobs of a dispatcher, starts a command for each, renews their leases, and
// settles them by what the commands return. It is the reference client of the worker interface, and owns no table: command
// aiv work calls it on machines without a database.
package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Config contains what a worker depends on.
type Config struct {
	URL       string // of the dispatcher
	Token     string
	Providers []string // whose jobs it claims; nil: all that the token allows
	Parallel  int      // commands at a time
	Lease     time.Duration
	Drain     time.Duration   // for commands in progress when the worker is asked to end
	Hurry     context.Context // not nil; when it is done, commands in progress end at once
	Command   []string
	Log       *slog.Logger

	settleTime time.Duration // how long the last settlements are retried; 0: 30 s
	killAfter  time.Duration // how long after SIGTERM a command gets SIGKILL; 0: 5 s
}

const (
	maxJobs   = 500 // in a request
	maxLogged = 50  // attempts in a line of the log

	claimWait = 20 * time.Second // for jobs

	callTime   = 10 * time.Second // of a request, besides claimWait
	settleCall = time.Minute      // of a request with up to 7 MiB
)

// Run works until ctx is done and the commands in progress have ended. It returns an error if the token is not valid, the
// command cannot be started, the dispatcher refuses what the worker sends, or it could not be reached for the last settlements.
func Run(ctx context.Context, cfg Config) error {
	w := &worker{cfg: cfg, client: newClient(cfg.URL, cfg.Token), held: make(map[string]*task), results: make(chan settlement, cfg.Parallel)}
	var stop context.CancelFunc
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	outlasting := context.WithoutCancel(ctx)
	w.hard, w.endCommands = context.WithCancel(outlasting)
	defer w.endCommands()
	defer context.AfterFunc(cfg.Hurry, w.endCommands)()

	renewing, endRenewing := context.WithCancel(outlasting)
	var renewal sync.WaitGroup
	renewal.Go(func() { w.renew(renewing) })
	settling, endSettling := context.WithCancel(outlasting)
	defer endSettling()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		w.settleAll(settling)
	}()

	context.AfterFunc(ctx, func() { time.AfterFunc(cfg.Drain, w.endCommands) }) // also while a claim is in progress
	w.claimAll(ctx)
	queued := make(chan struct{})
	go func() {
		defer close(queued)
		w.queueing.Wait()
		close(w.results)
	}()
	select {
	case <-queued:
	case <-w.hard.Done(): // while settlements fail, results may wait forever for room in the queue
	}
	late := time.AfterFunc(cmp.Or(cfg.settleTime, 30*time.Second), endSettling)
	<-settled
	late.Stop()
	endRenewing()
	renewal.Wait()
	return w.failure()
}

type worker struct {
	cfg    Config
	client *client

	stop        context.CancelFunc // claims no more
	hard        context.Context    // done when commands must end
	endCommands context.CancelFunc

	queueing sync.WaitGroup // commands that run, and results that wait for room in the queue
	results  chan settlement

	mu   sync.Mutex
	held map[string]*task // by id, until they are settled
	err  error            // the first that ends the worker
}

// A task is a job that the worker has claimed.
type task struct {
	id      string
	attempt int64
	job     json.RawMessage

	ctx    context.Context // done when the command must end; its cause is errLost if the lease is lost
	cancel context.CancelCauseFunc
	once   sync.Once
	end    *time.Timer // of the lease, unless it is renewed; it is guarded by the worker's mutex
}

var errLost = errors.New("the lease is lost")

// An attempt identifies a claimed job in requests and in the log.
type attempt struct {
	ID      string `json:"id"`
	Attempt int64  `json:"attempt"`
}

func attempts(tasks []*task) []attempt {
	a := make([]attempt, len(tasks))
	for i, t := range tasks {
		a[i] = attempt{t.id, t.attempt}
	}
	return a
}

// fail ends the worker with an error. Commands in progress may end within the drain time.
func (w *worker) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.stop()
}

func (w *worker) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// refused ends the worker if err is final, and reports whether it is. Without a valid token no job can be kept.
func (w *worker) refused(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	if !ok || e.temporary() {
		return false
	}
	w.fail(err)
	if e.status == 401 {
		w.endCommands()
	}
	return true
}

// claimAll claims jobs and starts their commands until ctx is done. It claims no more than it can start. A result that waits for
// room in the queue keeps its slot: while settlements fail, claims stop.
func (w *worker) claimAll(ctx context.Context) {
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
		for range free - len(tasks) {
			<-slots
		}
		if err != nil {
			if ctx.Err() != nil || w.refused(err) {
				return
			}
			w.cfg.Log.Warn("claiming jobs; trying again", "error", err)
			wait.sleep(ctx)
			continue
		}
		wait = backoff{}
		w.claimed(tasks)
		for _, t := range tasks {
			w.queueing.Go(func() {
				defer func() { <-slots }()
				if s, ok := w.execute(ctx, t); ok {
					w.results <- s
				} else {
					w.release(t)
				}
			})
		}
	}
}

// claimed logs the jobs of a claim.
func (w *worker) claimed(tasks []*task) {
	for part := range slices.Chunk(attempts(tasks), maxLogged) {
		w.cfg.Log.Info("claimed", "jobs", len(part), "attempts", part)
	}
}

// claim claims jobs. A claim that waits for jobs is abandoned when ctx is done; jobs handed out to it just then are handed out again
// when their leases end. While jobs wait, the first claim gets them, which is not abandoned.
func (w *worker) claim(ctx context.Context, limit int) ([]*task, error) {
	tasks, err := w.claimWithin(context.WithoutCancel(ctx), limit, 0)
	if err != nil || len(tasks) > 0 {
		return tasks, err
	}
	return w.claimWithin(ctx, limit, claimWait)
}

func (w *worker) claimWithin(ctx context.Context, limit int, wait time.Duration) ([]*task, error) {
	var jobs []json.RawMessage
	err := w.client.call(ctx, wait+callTime, "/claim", map[string]any{
		"limit": limit, "lease_seconds": int(w.cfg.Lease / time.Second), "providers": w.cfg.Providers, "wait_seconds": int(wait / time.Second),
	}, &jobs)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(w.cfg.Lease)
	tasks := make([]*task, 0, len(jobs))
	for _, job := range jobs[:min(len(jobs), limit)] {
		var j struct {
			ID      string `json:"id"`
			Attempt int64  `json:"attempt"`
		}
		if err := json.Unmarshal(job, &j); err != nil {
			return nil, fmt.Errorf("the dispatcher sent an invalid job: %w", err)
		}
		tasks = append(tasks, &task{id: j.ID, attempt: j.Attempt, job: job})
	}
	w.hold(tasks, end)
	return tasks, nil
}

// hold records leases that last until end. The worker loses those that it cannot renew: the dispatcher, which it may not reach,
// hands their jobs out again.
func (w *worker) hold(tasks []*task, end time.Time) {
	var earlier []*task // attempts of the same jobs
	w.mu.Lock()
	for _, t := range tasks {
		if other := w.held[t.id]; other != nil {
			earlier = append(earlier, other)
		}
		w.held[t.id] = t
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
	if w.held[t.id] == t { // and not a later attempt
		delete(w.held, t.id)
	}
}

// Package work is a worker: it claims jobs of a dispatcher, has an Executor answer each, renews their leases, and
// settles them by what has become of them. It is the reference client of the worker interface, and owns no table:
// command aiv work calls it on machines without a database.
package work

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Config contains what a worker depends on.
type Config struct {
	URL       string // of the dispatcher
	Token     string
	Providers []string // whose jobs it claims; nil: all that the token allows
	Parallel  int      // jobs that are executed at a time
	Lease     time.Duration
	Drain     time.Duration   // for jobs in progress when the worker is asked to end
	Kill      context.Context // not nil; when it is done, the execution of jobs in progress ends at once
	Executor  Executor
	Log       *slog.Logger

	settleTime time.Duration // how long the last settlements are retried; 0: 30 s
}

const (
	maxJobs   = 500 // in a request
	maxLogged = 50  // attempts in a line of the log

	claimWait = 20 * time.Second // for jobs

	callTime   = 10 * time.Second // of a request, besides claimWait
	settleCall = time.Minute      // of a request with answers
)

// Run works until ctx is done and the jobs in progress have ended. It returns an error if the token is not valid, the
// executor returned Fatal, the dispatcher refuses what the worker sends, or it could not be reached for the last
// settlements.
func Run(ctx context.Context, cfg Config) error {
	w := &worker{
		cfg: cfg, client: newClient(cfg.URL, cfg.Token),
		held: make(map[string]*task), results: make(chan settlement, cfg.Parallel),
	}
	// Claiming ends with ctx, which a signal or fail cancels. What must go on after that uses outlasting.
	var stop context.CancelFunc
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	outlasting := context.WithoutCancel(ctx)
	w.hard, w.endJobs = context.WithCancel(outlasting)
	defer w.endJobs()
	defer context.AfterFunc(cfg.Kill, w.endJobs)()

	// Leases are renewed until the last settlement, so that no finished job is lost before it is settled.
	renewing, endRenewing := context.WithCancel(outlasting)
	var renewal sync.WaitGroup
	renewal.Go(func() { w.renew(renewing) })
	// One goroutine settles, so that results that come in meanwhile are sent together.
	settling, endSettling := context.WithCancel(outlasting)
	defer endSettling()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		w.settleAll(settling)
	}()

	context.AfterFunc(ctx, func() { time.AfterFunc(cfg.Drain, w.endJobs) }) // also while a claim is in progress
	w.claimAll(ctx)
	// When no job is left that could send a result, closing results ends settleAll after the queued ones.
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
	// From here on a dispatcher that cannot be reached keeps the worker for a bounded time only.
	late := time.AfterFunc(cmp.Or(cfg.settleTime, 30*time.Second), endSettling)
	<-settled
	late.Stop()
	endRenewing()
	renewal.Wait()
	return w.failure()
}

// A worker is one call of Run. Its goroutines are claimAll, which is Run's own, one for each job, settleAll, those of
// settleApart, and renew.
type worker struct {
	cfg    Config
	client *client

	stop    context.CancelFunc // claims no more
	hard    context.Context    // done when the execution of jobs must end
	endJobs context.CancelFunc

	queueing sync.WaitGroup // jobs that are executed, and results that wait for room in the queue
	results  chan settlement

	apart sync.WaitGroup // calls of settleApart

	mu           sync.Mutex
	held         map[string]*task // by id, until they are settled
	settledApart int              // jobs that are being settled apart
	err          error            // the first that ends the worker
}

// A task is a job that the worker has claimed.
type task struct {
	Job

	ctx    context.Context // done when the execution must end; its cause is errLost if the lease is lost
	cancel context.CancelCauseFunc
	once   sync.Once
	end    *time.Timer // of the lease, unless it is renewed; it is guarded by the worker's mutex
}

// errLost is the cause of a task's context when another worker may have the job, or its run was canceled.
var errLost = errors.New("the lease is lost")

// An attempt identifies a claimed job in requests and in the log.
type attempt struct {
	ID      string `json:"id"`
	Attempt int64  `json:"attempt"`
}

// attempts returns the attempts of tasks. The caller may hold mu: it takes no lock.
func attempts(tasks []*task) []attempt {
	a := make([]attempt, len(tasks))
	for i, t := range tasks {
		a[i] = t.id()
	}
	return a
}

func (t *task) id() attempt { return attempt{t.ID, t.Attempt} }

// fail ends the worker with an error. Jobs in progress may end within the drain time.
func (w *worker) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
		if n := len(w.held); n > 0 { // otherwise the error is printed now
			w.cfg.Log.Error("claiming no more jobs; ending after those in progress", "jobs", n, "error", err)
		}
	}
	w.mu.Unlock()
	w.stop()
}

// failure returns the error of Run.
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
		w.endJobs()
	}
	return true
}

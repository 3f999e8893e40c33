package task

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// While no run of a task succeeds, its failures are logged once every repeatAfter. Otherwise a task that runs several
// times a second would fill the log while the database is down.
const repeatAfter = time.Minute

// A Runner runs tasks and counts their runs.
type Runner struct {
	log   *slog.Logger
	tasks []Task

	mu     sync.Mutex // guards what follows
	counts []Count    // by index of the task
}

// A Count is what has become of the runs of a task since its process started.
type Count struct {
	Name        string
	Succeeded   uint64
	Failed      uint64
	LastSuccess time.Time // the end of the latest run that succeeded; zero if there is none
}

// NewRunner returns a Runner of tasks with different names.
func NewRunner(log *slog.Logger, tasks []Task) *Runner {
	r := &Runner{log: log, tasks: tasks, counts: make([]Count, len(tasks))}
	for i := range tasks {
		r.counts[i].Name = tasks[i].Name
	}
	return r
}

// Run repeats the tasks until ctx is done and the runs in progress have returned. Their contexts are done with ctx.
func (r *Runner) Run(ctx context.Context) {
	var loops sync.WaitGroup
	for i := range r.tasks {
		loops.Go(func() { r.repeat(ctx, i) })
	}
	loops.Wait()
}

// Counts returns the counts of all tasks, in the order of the list.
func (r *Runner) Counts() []Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.counts)
}

// repeat is the loop of one task.
func (r *Runner) repeat(ctx context.Context, i int) {
	t := &r.tasks[i]
	next := time.NewTimer(t.first())
	defer next.Stop()
	f := failures{log: r.log, task: t.Name}
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(t.interval())
		case <-t.Wake:
		}
		if ctx.Err() != nil {
			return
		}
		err := t.once(ctx)
		if ctx.Err() != nil && err != nil {
			return // the run was interrupted
		}
		r.count(i, err)
		f.note(err)
	}
}

// once does a run within its timeout.
func (t *Task) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout())
	defer cancel()
	return t.Run(ctx)
}

func (r *Runner) count(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.counts[i].Failed++
		return
	}
	r.counts[i].Succeeded++
	r.counts[i].LastSuccess = time.Now()
}

// failures logs the failures of a task that follow one another: the first, then one in each repeatAfter, and the end.
type failures struct {
	log    *slog.Logger
	task   string
	n      int // since the latest success
	logged time.Time
}

func (f *failures) note(err error) {
	switch {
	case err == nil && f.n > 0:
		f.log.Info("task succeeds again", "task", f.task, "failures", f.n)
		f.n = 0
	case err != nil:
		f.n++
		if f.n == 1 || time.Since(f.logged) >= repeatAfter {
			f.logged = time.Now()
			f.log.Warn("task failed; will retry", "task", f.task, "failures", f.n, "error", err)
		}
	}
}

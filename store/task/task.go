// Package task repeats background work, such as purges and renewals, at intervals. It owns no table. The commands aiv
// serve and aiv dispatch run literal lists of tasks (package cmd/aiv/internal/service); a package with periodic work
// returns it as tasks.
package task

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Task is work that is repeated at an interval.
//
// A run of a task never overlaps another one in the same process. Other processes run the same tasks at the same time,
// so each run takes locks in the database where it must. A run that fails is logged, counted and repeated at the next
// interval.
type Task struct {
	// Name identifies the task in the log and in metrics, in the form purge_events.
	Name string

	// Every is the time from the start of a run to the start of the next one. It varies by up to a tenth, so that the
	// runs of processes that were started together spread. After a run that takes longer, the next one starts at once.
	Every time.Duration

	// Prompt marks a task that clients or leases depend on: its interval does not vary, and its first run starts Every
	// after the start of the process. The first run of other tasks starts after 1 s to 2 s, so that they do not delay
	// the first requests.
	Prompt bool

	// Wake starts a run between two intervals when it receives. If nil, only the intervals start runs.
	Wake <-chan struct{}

	// Timeout bounds a run: its context is done then. 0 means Every.
	Timeout time.Duration

	// Run does the work once. It returns soon after its context is done, which is also when the process is asked to
	// end. Its error says what could not be done.
	Run func(ctx context.Context) error
}

// startDelay is the shortest time until the first run of a task that is not prompt; the longest is twice that.
const startDelay = time.Second

// first returns the time from the start to the first run.
func (t *Task) first() time.Duration {
	if t.Prompt {
		return t.Every
	}
	return startDelay + rand.N(startDelay)
}

// interval returns the time from the start of a run to the start of the next.
func (t *Task) interval() time.Duration {
	if t.Prompt {
		return t.Every
	}
	tenth := t.Every / 10
	return t.Every - tenth + rand.N(2*tenth+1)
}

// timeout returns the longest time that a run may take.
func (t *Task) timeout() time.Duration {
	if t.Timeout == 0 {
		return t.Every
	}
	return t.Timeout
}

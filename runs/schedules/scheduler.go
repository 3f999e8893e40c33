package schedules

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights"
	"aiv/runs"
	"aiv/store"
	"aiv/store/task"
)

// SchedulerConfig contains what a Scheduler depends on. A transaction that has a connection of Pool may wait for
// another connection for the run checks.
type SchedulerConfig struct {
	Config
	Runs     *runs.Runs             // whose checks read the catalog
	Response func(*runs.Run) []byte // the response that is stored with the key of a run

	Derived insights.EventData // encodes what is derived
	Outage  *store.Outage      // on Citus
	Log     *slog.Logger
}

// A Scheduler carries out due times and evaluates runs. Any number of processes may have one. Only CarryOut uses
// served, and one task calls it, so it needs no lock.
type Scheduler struct {
	cfg         SchedulerConfig
	served      []store.ID // accounts that had their turn of CarryOut
	due         retries    // by schedule
	evaluations retries    // by account
	counts      counts
}

// NewScheduler returns a Scheduler.
func NewScheduler(cfg SchedulerConfig) *Scheduler {
	return &Scheduler{cfg: cfg, served: []store.ID{}} // not nil, which is NULL
}

const (
	// roundSize is the maximum number of schedules that are read at once. They are of different accounts.
	roundSize = 100
	// maxCarriedOut bounds the due times of one call of CarryOut, so that it ends within the time of the task.
	maxCarriedOut = 2000
	// A process carries out up to CarryOutWorkers due times at a time. Each takes up to two connections.
	CarryOutWorkers = 4
)

// Tasks returns the work of a Scheduler.
func (s *Scheduler) Tasks() []task.Task {
	return []task.Task{
		{Name: "carry_out_schedules", Every: 500 * time.Millisecond, Timeout: time.Minute, Prompt: true, Run: s.CarryOut},
		{Name: "evaluate_runs", Every: time.Second, Timeout: time.Minute, Prompt: true, Run: s.Evaluate},
		{Name: "purge_occurrences", Every: time.Hour, Timeout: time.Hour, Run: s.purge},
	}
}

// CarryOut carries out due schedules. Accounts take turns, the longest due schedule of each first, so that no account
// delays another by more than one turn. The next call goes on with the turns. A call tries each schedule once: no
// schedule waits for one that another process has locked.
func (s *Scheduler) CarryOut(ctx context.Context) error {
	var tried []store.ID
	for len(tried) < maxCarriedOut {
		var round []key
		err := s.cfg.Outage.Retry(ctx, func() (err error) {
			round, err = s.round(ctx, tried)
			return err
		})
		// All accounts with due schedules have had their turn: a new round of turns begins.
		if err == nil && len(round) == 0 && len(s.served) > 0 {
			s.served = s.served[:0]
			continue
		}
		if err != nil || len(round) == 0 {
			return err
		}
		// An account has had its turn even if carrying out fails.
		for _, k := range round {
			s.served, tried = append(s.served, k.Account), append(tried, k.ID)
		}
		succeeded := inParallel(CarryOutWorkers, round, func(k key) bool { return s.attempt(ctx, k) })
		if succeeded == 0 || ctx.Err() != nil {
			return ctx.Err() // what has failed is tried again later
		}
	}
	return nil
}

// inParallel calls f with each item, workers at a time, and returns how many calls returned true.
func inParallel[T any](workers int, items []T, f func(T) bool) int {
	// Filled and closed before the workers start, so that they only take.
	work := make(chan T, len(items))
	for _, item := range items {
		work <- item
	}
	close(work)
	var group sync.WaitGroup
	var done atomic.Int64
	for range min(workers, len(items)) {
		group.Go(func() {
			for item := range work {
				if f(item) {
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
	return int(done.Load())
}

// A key identifies a schedule.
type key struct{ Account, ID store.ID }

// round returns the next due schedule, among those that were not tried, of each account that has not had its turn, up to
// roundSize.
func (s *Scheduler) round(ctx context.Context, tried []store.ID) ([]key, error) {
	return store.Collect(ctx, s.cfg.Pool, pgx.RowToStructByPos[key], selectDue, s.cfg.Outage.Reachable(citusSelectDue),
		append(s.due.waiting(), tried...), roundSize, s.served)
}

// attempt carries out a schedule that is due, unless another process does, and reports whether that succeeded. What
// fails is tried again later.
func (s *Scheduler) attempt(ctx context.Context, k key) bool {
	err := s.carryOut(ctx, k.Account, k.ID)
	if err == nil {
		s.due.succeeded(k.ID)
		return true
	}
	if ctx.Err() == nil {
		wait := s.due.failed(k.ID)
		s.cfg.Log.Warn("a schedule could not be carried out; will retry", "schedule", k.ID.Text("sched"), "account", k.Account.Text("acct"),
			"retry_in", wait, "error", err)
	}
	return false
}

// Stats counts what a Scheduler has done since its process started.
type Stats struct {
	Occurrences     map[[2]string]uint64 // by status and code
	Alerts          map[[2]string]uint64 // by type and change
	Recommendations map[[2]string]uint64 // by type and change
}

// counts are the Stats of a Scheduler.
type counts struct {
	mu sync.Mutex
	Stats
}

// Stats returns the statistics.
func (s *Scheduler) Stats() Stats {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return Stats{maps.Clone(s.counts.Occurrences), maps.Clone(s.counts.Alerts), maps.Clone(s.counts.Recommendations)}
}

// count counts occurrences that were committed.
func (s *Scheduler) count(done []Occurrence) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for i := range done {
		code := ""
		if done[i].Code != nil {
			code = *done[i].Code
		}
		add(&s.counts.Occurrences, [2]string{done[i].Status, code})
	}
}

// countChanges counts what an evaluation has derived, after its commit.
func (s *Scheduler) countChanges(c *insights.Changes) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for _, a := range c.Alerts {
		add(&s.counts.Alerts, [2]string{a.Type, a.Change})
	}
	for _, r := range c.Recommendations {
		add(&s.counts.Recommendations, [2]string{r.Type, r.Change})
	}
}

func add(to *map[[2]string]uint64, key [2]string) {
	if *to == nil {
		*to = make(map[[2]string]uint64)
	}
	(*to)[key]++
}

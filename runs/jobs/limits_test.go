package jobs_test

import (
	"sync"
	"testing"
	"time"

	"aiv/runs/jobs"
)

// TestLimitHoldsOverTwoProcesses: over two processes, no more jobs are claimed than a limit allows, and all that it allows.
func TestLimitHoldsOverTwoProcesses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	processes := []*jobs.Dispatcher{s.dispatcher(t), jobs.New(jobs.Config{Pool: s.open(t), Timeout: 20 * time.Second, MaxWaiting: 1000})}
	for range 3 {
		s.createRun(t, s.account(t), []string{"m1", "m2"}, 100, 1)
	}
	// all claims as many jobs as there are, from everywhere at once.
	all := func() (got []jobs.Job) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for {
					some := claim(t, processes[n%2], 7)
					if len(some) == 0 {
						return
					}
					mu.Lock()
					got = append(got, some...)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return got
	}
	of := func(claimed []jobs.Job) map[string]int {
		n := make(map[string]int)
		for _, j := range claimed {
			n[j.Provider]++
		}
		return n
	}
	s.setLimits(t, "p1", nil, new(40))
	s.setLimits(t, "p2", nil, new(0))
	first := all()
	equal(t, map[string]int{"p1": 40}, of(first), "in flight")
	settle(t, processes[0], jobs.Completed, first[:15]...)
	settle(t, processes[1], jobs.Released, first[15:20]...)
	equal(t, map[string]int{"p1": 20}, of(all()), "in flight after 20 were settled")

	s.exec(t, `DELETE FROM provider_minutes`) // the claims before count for no limit
	s.setLimits(t, "p1", new(0), nil)
	s.setLimits(t, "p2", new(33), nil)
	minutes := s.count(t, `SELECT extract(minute FROM now())::integer`)
	claimed := all()
	if now := s.count(t, `SELECT extract(minute FROM now())::integer`); now == minutes {
		equal(t, map[string]int{"p2": 33}, of(claimed), "per minute")
	}
	s.setLimits(t, "p2", nil, nil)
	equal(t, 300-len(claimed), len(all()), "jobs of p2 after ", len(claimed), " of 300")
}

package jobs_test

import (
	"sync"
	"testing"
	"time"

	"aiv/runs/jobs"

	"github.com/google/go-cmp/cmp"
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
	admin := &jobs.ProviderAdmin{Pool: s.pool, Actor: "test"}
	must(t, admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true, Value: new(40)}}))
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true, Value: new(0)}}))
	first := all()
	if diff := cmp.Diff(map[string]int{"p1": 40}, of(first)); diff != "" {
		t.Errorf("in flight: %s", diff)
	}
	settle(t, processes[0], jobs.Completed, first[:15]...)
	settle(t, processes[1], jobs.Released, first[15:20]...)
	if diff := cmp.Diff(map[string]int{"p1": 20}, of(all())); diff != "" {
		t.Errorf("in flight after 20 were settled: %s", diff)
	}

	s.exec(t, `DELETE FROM provider_minutes`) // the claims before count for no limit
	must(t, admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true}, PerMinute: jobs.ProviderLimit{Set: true, Value: new(0)}}))
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true}, PerMinute: jobs.ProviderLimit{Set: true, Value: new(33)}}))
	var claimed []jobs.Job
	minutes := s.count(t, `SELECT extract(minute FROM now())::integer`)
	claimed = all()
	if now := s.count(t, `SELECT extract(minute FROM now())::integer`); now == minutes {
		if diff := cmp.Diff(map[string]int{"p2": 33}, of(claimed)); diff != "" {
			t.Errorf("per minute: %s", diff)
		}
	}
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{PerMinute: jobs.ProviderLimit{Set: true}}))
	must(t, admin.Pause(t.Context(), "p2", "reason"))
	if n := len(all()); n != 0 {
		t.Errorf("%d jobs of a paused provider", n)
	}
	must(t, admin.Resume(t.Context(), "p2", "reason"))
	s.exec(t, `UPDATE provider_dependencies SET met = false WHERE provider_code = 'p2' AND dependency = 'contract'`)
	if n := len(all()); n != 0 {
		t.Errorf("%d jobs of a provider without a contract", n)
	}
	s.exec(t, `UPDATE provider_dependencies SET met = true`)
	if n := len(all()); n != 300-len(claimed) {
		t.Errorf("%d jobs of p2 after %d of 300", n, len(claimed))
	}
	s.check(t)
}

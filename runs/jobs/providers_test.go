package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"aiv/runs/jobs"
)

// TestProviderStates: what waits and is under way at each provider, and what holds it up.
func TestProviderStates(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	admin := &jobs.ProviderAdmin{Pool: s.pool, Actor: "test"}
	a := s.account(t)
	s.createRun(t, a, []string{"m1", "m2"}, 10, 2)
	got := func() (states []string) {
		all, err := jobs.ProviderStates(t.Context(), s.pool)
		must(t, err)
		backlogs, err := jobs.ReadBacklogs(t.Context(), s.pool)
		must(t, err)
		for i, p := range all {
			want := jobs.ProviderBacklog{Code: p.Code, Paused: p.PausedAt != nil || p.ThrottledUntil != nil, Leased: p.Leased, Waiting: p.Waiting}
			equal(t, want, backlogs[i], "backlog")
			states = append(states, fmt.Sprintf("%s: %d waiting, %d leased, %s", p.Code, p.Waiting, p.Leased, p.Blocked()))
		}
		return states
	}
	want := func(p1, p2 string) {
		t.Helper()
		equal(t, []string{p1, p2}, got())
	}
	want("p1: 20 waiting, 0 leased, ", "p2: 20 waiting, 0 leased, ")
	s.setLimits(t, "p1", nil, new(5))
	s.setLimits(t, "p2", new(0), nil)
	claimed := claim(t, d, 10)
	want("p1: 15 waiting, 5 leased, the limit of 5 in flight is reached", "p2: 20 waiting, 0 leased, the limit of 0 per minute is reached")
	must(t, admin.Pause(t.Context(), "p2", "maintenance"))
	began := time.Now()
	settle(t, d, jobs.Throttled, claimed[0])
	all, err := jobs.ProviderStates(t.Context(), s.pool)
	must(t, err)
	if until := all[0].ThrottledUntil; until == nil || until.Sub(began) < 20*time.Second {
		t.Errorf("throttled until %v", until)
	}
	must(t, admin.Resume(t.Context(), "p1", "the provider answers again"))
	want("p1: 16 waiting, 4 leased, ", "p2: 20 waiting, 0 leased, the provider is paused: maintenance")
	s.exec(t, `UPDATE provider_dependencies SET met = false WHERE provider_code = 'p2' AND dependency IN ('secret', 'contract')`)
	equal(t, "p2: 20 waiting, 0 leased, the provider lacks secret, contract", got()[1])
	for _, err := range []error{
		admin.Pause(t.Context(), "p1", " "), admin.Pause(t.Context(), "p3", "x"), admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{}),
		admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{PerMinute: jobs.ProviderLimit{Set: true, Value: new(-1)}}),
		admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true, Value: new(jobs.MaxProviderLimit + 1)}}),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
	equal(t, 4, s.count(t, `SELECT count(*) FROM audit_log WHERE action LIKE 'providers.%'`),
		"changes are in the audit log")
}

// TestLaterThrottleHolds: of two throttles of a provider the one that ends later holds, whether they come together or
// not.
func TestLaterThrottleHolds(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 4, 1)
	claimed := claim(t, d, 4)
	throttled := func(i int, after time.Duration) jobs.Settlement {
		w := settlement(claimed[i], jobs.Throttled)
		w.After = after
		return w
	}
	for i, together := range [][]jobs.Settlement{
		{throttled(0, time.Hour), throttled(1, time.Minute)}, {throttled(2, time.Minute)}, {throttled(3, 2*time.Hour)},
	} {
		settleAs(t, d, jobs.Reporter{}, together...)
		want := []int{59, 59, 119}[i]
		equal(t, want, s.count(t, `SELECT floor(extract(epoch FROM until - now()) / 60)::integer FROM provider_throttles`),
			"minutes of the throttle after settlement ", i)
	}
}

// TestOldestRun: what waits at a provider, since when, and whether only for another try. Jobs of canceled runs do not
// count, nor do claims of earlier minutes.
func TestOldestRun(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	a := s.account(t)
	want := func(what string, waiting, leased int64, oldest, retry bool) {
		t.Helper()
		all, err := jobs.ProviderStates(t.Context(), s.pool)
		must(t, err)
		if p := all[0]; p.Waiting != waiting || p.Leased != leased || (p.OldestRun != nil) != oldest || (p.RetryAt != nil) != retry || all[1].Waiting+all[1].Leased != 0 {
			t.Errorf("%s: %+v", what, all)
		}
	}
	s.exec(t, `INSERT INTO provider_minutes (provider_code, minute, claimed) VALUES ('p1', date_trunc('minute', now() - interval '1 h', 'UTC'), 7)`)
	all, err := jobs.ProviderStates(t.Context(), s.pool)
	must(t, err)
	equal(t, 0, all[0].ClaimedThisMinute, "claims in this minute")
	s.cancel(t, s.createRun(t, a, []string{"m1", "m2"}, 1, 1))
	want("canceled before it was queued", 0, 0, false, false)

	run := s.createRun(t, a, []string{"m1"}, 4, 1)
	retry := settlement(claim(t, d, 2)[0], jobs.Retry)
	retry.After = time.Hour
	settleAs(t, d, jobs.Reporter{}, retry)
	want("one waits for another try, two are queued", 3, 1, true, false)
	claim(t, d, 2)
	want("one waits for another try", 1, 3, true, true)
	s.pass(t, time.Hour)
	want("it has waited", 1, 3, true, false)
	s.createRun(t, a, []string{"m1"}, 1, 1)
	want("another run has arrived", 2, 3, true, false)
	s.cancel(t, run)
	want("the run is canceled", 1, 0, true, false)
	claim(t, d, 2)
	canceled := s.createRun(t, a, []string{"m2"}, 2, 1)
	claim(t, d, 1)
	s.cancel(t, canceled)
	want("a run with a queued job is canceled", 0, 1, false, false)
}

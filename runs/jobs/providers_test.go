package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"aiv/runs/jobs"

	"github.com/google/go-cmp/cmp"
)

// TestProviderStates: what waits and is under way at each provider, and what holds it up.
func TestProviderStates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
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
			if diff := cmp.Diff(want, backlogs[i]); diff != "" {
				t.Errorf("backlog (-want +got):\n%s", diff)
			}
			states = append(states, fmt.Sprintf("%s: %d waiting, %d leased, %s", p.Code, p.Waiting, p.Leased, p.Blocked()))
		}
		return states
	}
	want := func(p1, p2 string) {
		t.Helper()
		if diff := cmp.Diff([]string{p1, p2}, got()); diff != "" {
			t.Error(diff)
		}
	}
	want("p1: 20 waiting, 0 leased, ", "p2: 20 waiting, 0 leased, ")
	must(t, admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true, Value: new(5)}}))
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{PerMinute: jobs.ProviderLimit{Set: true, Value: new(0)}}))
	claimed := claim(t, d, 10)
	want("p1: 15 waiting, 5 leased, the limit of 5 in flight is reached", "p2: 20 waiting, 0 leased, the limit of 0 per minute is reached")
	must(t, admin.Pause(t.Context(), "p2", "maintenance"))
	settle(t, d, jobs.Throttled, claimed[0])
	all, err := jobs.ProviderStates(t.Context(), s.pool)
	must(t, err)
	if until := all[0].ThrottledUntil; until == nil || time.Until(*until) < 20*time.Second {
		t.Errorf("throttled until %v", until)
	}
	must(t, admin.Resume(t.Context(), "p1", "the provider answers again"))
	want("p1: 16 waiting, 4 leased, ", "p2: 20 waiting, 0 leased, the provider is paused: maintenance")
	s.exec(t, `UPDATE provider_dependencies SET met = false WHERE provider_code = 'p2' AND dependency IN ('secret', 'contract')`)
	if blocked := got()[1]; blocked != "p2: 20 waiting, 0 leased, the provider lacks secret, contract" {
		t.Error(blocked)
	}
	for _, err := range []error{
		admin.Pause(t.Context(), "p1", " "), admin.Pause(t.Context(), "p3", "x"), admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{}),
		admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{PerMinute: jobs.ProviderLimit{Set: true, Value: new(-1)}}),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
	if n := s.count(t, `SELECT count(*) FROM audit_log WHERE action LIKE 'providers.%'`); n != 4 {
		t.Errorf("%d changes are in the audit log, want 4", n)
	}
}

// TestLaterThrottleHolds: of two throttles of a provider the one that ends later holds, whether they come together or not.
func TestLaterThrottleHolds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	s.createRun(t, s.account(t), []string{"m1"}, 4, 1)
	claimed := claim(t, d, 4)
	throttled := func(i int, after time.Duration) jobs.Settlement {
		w := settlement(claimed[i], jobs.Throttled)
		w.After = after
		return w
	}
	for i, together := range [][]jobs.Settlement{{throttled(0, time.Hour), throttled(1, time.Minute)}, {throttled(2, time.Minute)}, {throttled(3, 2*time.Hour)}} {
		_, err := d.Settle(t.Context(), nil, together)
		must(t, err)
		want := []int{59, 59, 119}[i]
		if n := s.count(t, `SELECT floor(extract(epoch FROM until - now()) / 60)::integer FROM provider_throttles`); n != want {
			t.Errorf("settlement %d: the provider is throttled for %d min, want %d", i, n, want)
		}
	}
}

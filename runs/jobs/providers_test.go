package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// providers returns the state of each provider. It fails the test if ReadBacklogs returns other numbers.
func (s *site) providers() []ProviderState {
	s.t.Helper()
	all, err := ProviderStates(s.t.Context(), s.pool)
	must(s.t, err)
	backlogs, err := ReadBacklogs(s.t.Context(), s.pool)
	must(s.t, err)
	for i, p := range all {
		paused := p.PausedAt != nil || p.ThrottledUntil != nil
		equal(s.t, ProviderBacklog{p.Code, paused, p.PauseReason, p.Leased, p.Waiting}, backlogs[i], "backlog")
	}
	return all
}

// TestProviderStates: what waits and is under way at each provider, and what holds it up.
func TestProviderStates(t *testing.T) {
	s := newSite(t)
	s.orderOf(s.account(), "m1 m2", 10, 2)
	want := func(want ...string) {
		t.Helper()
		for i, p := range s.providers() {
			equal(t, want[i], fmt.Sprintf("%d waiting, %d leased, %s", p.Waiting, p.Leased, p.Blocked()), p.Code)
		}
	}
	s.limit("p1", nil, new(5))
	s.limit("p2", new(0), nil)
	claimed := s.claim(10)
	want("15 waiting, 5 leased, the limit of 5 in flight is reached",
		"20 waiting, 0 leased, the limit of 0 per minute is reached")
	must(t, s.admin().Pause(t.Context(), "p2", "maintenance"))
	// Of two throttles the one that ends later holds, whether they come together or not.
	s.report(Reporter{}, settlement(claimed[0], Throttled, time.Hour), settlement(claimed[1], Throttled, time.Minute))
	s.report(Reporter{}, settlement(claimed[2], Throttled, time.Minute))
	p := s.providers()[0]
	if why := p.Blocked(); !strings.HasPrefix(why, "the provider is throttled until ") || time.Until(*p.ThrottledUntil) < time.Minute {
		t.Errorf("a throttled provider: %s", why)
	}
	must(t, s.admin().Resume(t.Context(), "p1", "the provider answers again"))
	want("18 waiting, 2 leased, ", "20 waiting, 0 leased, the provider is paused: maintenance")
	s.exec(`UPDATE provider_dependencies SET met = provider_code = 'p2' OR dependency NOT IN ('secret', 'contract')`)
	want("18 waiting, 2 leased, the provider lacks secret, contract",
		"20 waiting, 0 leased, the provider is paused: maintenance")
	for _, limits := range []ProviderLimits{
		{}, {PerMinute: ProviderLimit{true, new(-1)}}, {InFlight: ProviderLimit{true, new(MaxProviderLimit + 1)}},
	} {
		if err := s.admin().SetLimits(t.Context(), "p1", limits); err == nil {
			t.Errorf("%+v was accepted", limits)
		}
	}
	if s.admin().Pause(t.Context(), "p1", " ") == nil || s.admin().Pause(t.Context(), "p3", "x") == nil {
		t.Error("a pause without a note, or of no provider, was accepted")
	}
}

// TestUnavailablePausesTheProvider: the job is queued again at once without a try, its provider is paused for every
// worker until an operator resumes it, and leases that others hold stay. A repeated report is settled and pauses
// nothing, even after the pause.
func TestUnavailablePausesTheProvider(t *testing.T) {
	s := newSite(t)
	run := s.orderOf(s.account(), "m1 m2", 3, 1)
	first, second := Reporter{Worker: store.NewID()}, Reporter{Worker: store.NewID()}
	unavailable := func(j Job, reason, message string) Settlement {
		return Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: Unavailable, ErrorCode: reason, ErrorMessage: message}
	}
	blocked := func(want string) {
		t.Helper()
		equal(t, want, s.providers()[0].Blocked())
	}
	claimed := s.claim(3, "p1")
	report := unavailable(claimed[0], "secret", "The key is rejected.")
	equal(t, "settled", s.report(first, report))
	if got := s.claim(10); len(got) != 3 || got[0].Provider != "p2" {
		t.Errorf("%d jobs are handed out, want the other provider's 3", len(got))
	}
	equal(t, "running: 5 of 6 jobs running, 0 completed, 0 failed, 0 canceled", s.state(run))
	// The first report holds, and other leases can be settled.
	equal(t, "settled settled",
		s.report(second, unavailable(claimed[1], "contract", "No credit."), settlement(claimed[2], Completed)))
	blocked("the provider is paused (secret) until you run aiv providers resume p1 -note TEXT: The key is rejected.")

	must(t, s.admin().Resume(t.Context(), "p1", "a new key"))
	equal(t, "settled", s.report(first, report), "repeated after the resume")
	again := s.claim(10)
	equal(t, []int{2, 2}, []int{len(again), again[0].Attempt}, "jobs and attempt")
	equal(t, "settled stale", s.settle(Unavailable, claimed[1:]...))
	blocked("")
	// An operator's pause replaces a worker's, and stays when a worker reports again.
	s.report(first, unavailable(again[0], "configuration", "The region is not served."))
	must(t, s.admin().Pause(t.Context(), "p1", "known"))
	s.report(first, unavailable(again[1], "secret", "x"))
	blocked("the provider is paused: known")
	const audited = `SELECT count(*) FROM audit_log WHERE action = 'providers.unavailable' AND actor = $1`
	equal(t, 2, s.count(audited, first.Worker.Text("wrk")), "pauses in the audit log, by the worker")
}

// TestClaimAfterUnavailable: once the pause is committed no claim hands out a job of the provider, even one that began
// before: it waits for the transaction that pauses.
func TestClaimAfterUnavailable(t *testing.T) {
	s := newSite(t)
	s.order(2)
	held := s.claim(1)
	var claimed func() ([]Job, error)
	must(t, s.whileStopped(s.pool, "INTO provider_pauses", func(pool *pgxpool.Pool) error {
		return ignore(s.dispatcher(Config{Pool: pool}).Settle(t.Context(), Reporter{}, []Settlement{settlement(held[0], Unavailable)}))
	}, func() {
		claimed = s.goClaim(ClaimRequest{})
		storetest.UntilWaiting(t, s.pool, "advisory")
	}))
	got, err := claimed()
	must(t, err)
	equal(t, 0, len(got), "jobs were handed out after the pause")
}

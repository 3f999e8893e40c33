package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
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
	want("20 waiting, 0 leased, ", "20 waiting, 0 leased, ")
	s.limit("p1", nil, new(5))
	s.limit("p2", new(0), nil)
	claimed := s.claim(10)
	want("15 waiting, 5 leased, the limit of 5 in flight is reached",
		"20 waiting, 0 leased, the limit of 0 per minute is reached")
	must(t, s.admin().Pause(t.Context(), "p2", "maintenance"))
	s.settle(Throttled, claimed[0])
	s.pass(-time.Hour) // the throttle lasts for longer than the test
	if why := s.providers()[0].Blocked(); !strings.HasPrefix(why, "the provider is throttled until ") {
		t.Errorf("a throttled provider: %s", why)
	}
	must(t, s.admin().Resume(t.Context(), "p1", "the provider answers again"))
	want("16 waiting, 4 leased, ", "20 waiting, 0 leased, the provider is paused: maintenance")
	s.exec(`UPDATE provider_dependencies SET met = provider_code = 'p1' OR dependency NOT IN ('secret', 'contract')`)
	want("16 waiting, 4 leased, ", "20 waiting, 0 leased, the provider lacks secret, contract")
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
	equal(t, 4, s.count(`SELECT count(*) FROM audit_log WHERE action LIKE 'providers.%'`), "changes are in the audit log")
}

// TestLaterThrottleHolds: of two throttles of a provider the one that ends later holds, whether they come together or
// not.
func TestLaterThrottleHolds(t *testing.T) {
	s := newSite(t)
	s.order(3)
	held := s.claim(3)
	const hours = `SELECT round(extract(epoch FROM until - now()) / 3600)::integer FROM provider_throttles`
	s.report(Reporter{}, after(time.Hour, held[0], Throttled), after(time.Minute, held[1], Throttled))
	equal(t, 1, s.count(hours), "together")
	s.report(Reporter{}, after(time.Minute, held[2], Throttled))
	equal(t, 1, s.count(hours), "an earlier one later")
}

func unavailable(j Job, reason, message string) Settlement {
	s := settlement(j, Unavailable)
	s.ErrorCode, s.ErrorMessage = reason, message
	return s
}

// pause returns the pause of a provider without its time, as "reason: note, by".
func (s *site) pause(provider string) string {
	s.t.Helper()
	return storetest.Value[string](s.t, s.pool, `SELECT COALESCE(max(format('%s: %s, by %s', reason, note, paused_by)), 'none')
		FROM provider_pauses WHERE provider_code = $1`, provider)
}

// TestUnavailablePausesTheProvider: the job is queued again at once without a try, its provider is paused for every
// worker until an operator resumes it, and leases that others hold stay. A repeated report is settled and pauses
// nothing, even after the pause.
func TestUnavailablePausesTheProvider(t *testing.T) {
	s := newSite(t)
	run := s.orderOf(s.account(), "m1 m2", 3, 1)
	w1 := s.worker()
	by := w1.Text("wrk")
	first, second := Reporter{Worker: w1}, Reporter{Worker: s.worker()}
	claimed := s.claim(3, "p1")
	report := unavailable(claimed[0], "secret", "The key is rejected.")
	equal(t, "settled", s.report(first, report))
	if got := s.claim(10); len(got) != 3 || got[0].Provider != "p2" {
		t.Errorf("%d jobs are handed out, want those of the other provider", len(got))
	}
	equal(t, "running: 5 of 6 jobs running, 0 completed, 0 failed, 0 canceled", s.state(run))

	// The first report holds, and other leases can be settled.
	equal(t, "settled settled",
		s.report(second, unavailable(claimed[1], "contract", "No credit."), settlement(claimed[2], Completed)))
	equal(t, "secret: The key is rejected., by "+by, s.pause("p1"))
	p := s.providers()[0]
	equal(t, int64(2), p.Waiting, "jobs that wait")
	equal(t, "the provider is paused (secret) until you run aiv providers resume p1 -note TEXT: The key is rejected.",
		p.Blocked())

	must(t, s.admin().Resume(t.Context(), "p1", "a new key"))
	equal(t, "settled", s.report(first, report), "repeated after the resume")
	again := s.claim(10)
	equal(t, []int{2, 2}, []int{len(again), again[0].Attempt}, "jobs and attempt")
	equal(t, "settled stale", s.settle(Unavailable, claimed[1:]...))
	equal(t, "none", s.pause("p1"), "after other attempts")

	// An operator's pause replaces a worker's, and stays when a worker reports again.
	s.report(first, unavailable(again[0], "configuration", "The region is not served."))
	must(t, s.admin().Pause(t.Context(), "p1", "known"))
	s.report(first, unavailable(again[1], "secret", "x"))
	equal(t, ": known, by op", s.pause("p1"))
	audited, err := store.Collect(t.Context(), s.pool, pgx.RowTo[string],
		`SELECT concat_ws(' ', actor, action, subject, detail) FROM audit_log ORDER BY id`)
	must(t, err)
	equal(t, []string{
		by + ` providers.unavailable p1 {"reason": "secret", "message": "The key is rejected."}`,
		`op providers.resume p1 {"note": "a new key"}`,
		by + ` providers.unavailable p1 {"reason": "configuration", "message": "The region is not served."}`,
		`op providers.pause p1 {"note": "known"}`,
	}, audited)
}

// TestClaimAfterUnavailable: once the pause is committed no claim hands out a job of the provider, even one that began
// before: it waits for the transaction that pauses.
func TestClaimAfterUnavailable(t *testing.T) {
	s := newSite(t)
	s.order(2)
	held := s.claim(1)
	var claimed <-chan claimed
	must(t, s.whileStopped(s.pool, "INTO provider_pauses", func(pool *pgxpool.Pool) error {
		d := s.dispatcher(Config{Pool: pool})
		return ignore(d.Settle(t.Context(), Reporter{}, []Settlement{settlement(held[0], Unavailable)}))
	}, func() {
		claimed = s.goClaim(t.Context(), ClaimRequest{})
		storetest.UntilWaiting(t, s.pool, "advisory")
	}))
	equal(t, 0, len(s.jobsOf(claimed)), "jobs were handed out after the pause")
}

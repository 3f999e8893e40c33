package jobs

import (
	"strings"
	"testing"

	"aiv/store"
)

// served claims jobs, and returns how many are of each account and provider, such as "a p1: 2".
func (s *site) served(names map[store.ID]string, limit int, providers ...string) map[string]int {
	s.t.Helper()
	served := make(map[string]int)
	for _, j := range s.claim(limit, providers...) {
		served[names[j.Key.Account]+" "+j.Provider]++
	}
	return served
}

// TestSmallAccountIsServedSoon: 6 jobs of an account that arrives later come within two claims of 10 while 100,000 jobs
// of a large account wait, and turns go on across claims of 1.
func TestSmallAccountIsServedSoon(t *testing.T) {
	s := newSite(t)
	large := s.account()
	for range 5 {
		s.orderOf(large, "m1 m2", 100, 100) // 20,000 jobs
	}
	s.claim(100)
	small := s.account()
	names := map[store.ID]string{large: "large", small: "small"}
	s.orderOf(small, "m1", 6, 1)
	equal(t, 6, s.served(names, 10)["small p1"]+s.served(names, 10)["small p1"], "of 20 jobs of the small run")
	s.orderOf(small, "m2", 6, 1)
	var turns []string
	for range 8 {
		turns = append(turns, names[s.claim(1)[0].Key.Account])
	}
	equal(t, "large small large small large small large small", strings.Join(turns, " "), "turns of claims of 1")
}

// TestClosedProvider: while the jobs of a provider cannot be claimed, those of another provider are handed out as if
// the former had none: to all accounts in turn, of the same runs as well, to claims of all providers and to claims that
// list both.
func TestClosedProvider(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ close, open string }{
		"paused": {`INSERT INTO provider_pauses (provider_code, note, paused_by) VALUES ('p1', 'x', 'op')`, `DELETE FROM provider_pauses`},
		"throttled": {`INSERT INTO provider_throttles (provider_code, until) VALUES ('p1', now() + interval '1 h')`,
			`UPDATE provider_throttles SET until = now()`},
		"unmet": {`UPDATE provider_dependencies SET met = dependency <> 'legal_approval' WHERE provider_code = 'p1'`,
			`UPDATE provider_dependencies SET met = true`},
		"no claims in this minute": {`INSERT INTO provider_settings (provider_code, per_minute) VALUES ('p1', 0)`,
			`DELETE FROM provider_settings`},
		"no leases": {`INSERT INTO provider_settings (provider_code, in_flight) VALUES ('p1', 0)`, `DELETE FROM provider_settings`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.exec(test.close)
			large, small := s.account(), s.account()
			names := map[store.ID]string{large: "large", small: "small"}
			for range 50 { // older jobs of p1 than a claim reads
				s.orderOf(large, "m1", 100, 20)
			}
			s.orderOf(large, "m1 m2", 100, 20)
			s.orderOf(small, "m1 m2", 6, 1)
			for _, providers := range [][]string{nil, {"p1", "p2"}} {
				equal(t, map[string]int{"small p2": 3, "large p2": 3}, s.served(names, 6, providers...), "claimed of ", providers)
			}
			s.exec(test.open)
			equal(t, map[string]int{"small p1": 6, "large p1": 3, "large p2": 3}, s.served(names, 12), "when it is open again")
		})
	}
}

// TestTurnsWithoutJobs: accounts whose jobs were all handed out or canceled take no place in a claim from an account
// that has jobs. Their turns are deleted.
func TestTurnsWithoutJobs(t *testing.T) {
	s := newSite(t)
	want := func(run store.ID) {
		t.Helper()
		if got := s.claim(1, "p1"); len(got) != 1 || got[0].Key.Run != run {
			t.Errorf("claimed %+v, want a job of %s", got, run)
		}
	}
	want(s.order(1))
	account := s.account()
	var canceled []store.ID
	for range 60 {
		canceled = append(canceled, s.order(2))
	}
	s.claim(1)
	canceled = append(canceled, s.orderOf(account, "m1", 1, 1)) // before its job is queued
	for _, run := range canceled {
		s.cancel(run)
	}
	last := s.orderOf(account, "m1", 2, 1)
	want(last)
	want(last)
	equal(t, 0, len(s.claim(1)), "jobs without an account")
	equal(t, 0, s.rows("job_turns"), "turns of accounts without jobs are left")
}

// TestTurnOfAccountWithMoreSpans: an account keeps its turn if a claim gets all spans that it has read of it, and there
// are more. Its oldest runs come first, also when their jobs were given back.
func TestTurnOfAccountWithMoreSpans(t *testing.T) {
	s := newSite(t)
	s.order(1)
	account := s.account()
	var created []store.ID
	for range 40 {
		created = append(created, s.orderOf(account, "m1", 1, 1))
	}
	for range 2 {
		var all []Job
		var order []store.ID
		for got := s.claim(20); len(got) > 0; got = s.claim(20) {
			all = append(all, got...)
		}
		for _, j := range all {
			if j.Key.Account == account {
				order = append(order, j.Key.Run)
			}
		}
		equal(t, created, order, "order of the runs")
		equal(t, 0, s.rows("job_turns"), "turns of accounts without jobs are left")
		s.settle(Released, all...)
	}
}

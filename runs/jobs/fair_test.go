package jobs

import (
	"strings"
	"testing"
	"time"

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

// TestSmallAccountIsServedSoon: while an account is alone, a claim writes only its turn at the provider that serves it.
// 6 jobs of an account that arrives later come within two claims of 10 while 100,000 jobs of the large account wait, and
// turns go on across claims of 1.
func TestSmallAccountIsServedSoon(t *testing.T) {
	s := newSite(t)
	large := s.account()
	for range 5 {
		s.orderOf(large, "m1 m2", 100, 100) // 20,000 jobs
	}
	s.claim(100)
	for range 3 {
		s.claim(2)
		equal(t, 2, s.count(`SELECT count(DISTINCT xmin::text) FROM job_turns`), "transactions that wrote turns")
	}
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
	for name, test := range map[string]struct{ close, open func(s *site) }{
		"paused": {func(s *site) { must(s.t, s.admin().Pause(s.t.Context(), "p1", "test")) },
			func(s *site) { must(s.t, s.admin().Resume(s.t.Context(), "p1", "test")) }},
		"throttled": {func(s *site) {
			s.exec(`INSERT INTO provider_throttles (provider_code, until) VALUES ('p1', now() + interval '1 hour')`)
		}, func(s *site) { s.pass(time.Hour) }},
		"unmet": {func(s *site) {
			s.exec(`UPDATE provider_dependencies SET met = dependency <> 'legal_approval' WHERE provider_code = 'p1'`)
		}, func(s *site) { s.exec(`UPDATE provider_dependencies SET met = true`) }},
		"no claims in this minute": {func(s *site) { s.limit("p1", new(0), nil) }, func(s *site) { s.limit("p1", nil, nil) }},
		"no leases":                {func(s *site) { s.limit("p1", nil, new(0)) }, func(s *site) { s.limit("p1", nil, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			test.close(s)
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
			test.open(s)
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
	var canceled []store.ID
	for range 60 {
		canceled = append(canceled, s.order(2))
	}
	s.claim(1)
	account := s.account()
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
// are more. Its oldest runs come first.
func TestTurnOfAccountWithMoreSpans(t *testing.T) {
	s := newSite(t)
	s.order(1)
	account := s.account()
	var created []store.ID
	for range 40 {
		created = append(created, s.orderOf(account, "m1", 1, 1))
	}
	for _, what := range []string{"queued", "given back"} {
		var all []Job
		for got := s.claim(20); len(got) > 0; got = s.claim(20) {
			all = append(all, got...)
		}
		equal(t, 41, len(all), "jobs that were ", what)
		var order []store.ID
		for _, j := range all {
			if j.Key.Account == account {
				order = append(order, j.Key.Run)
			}
		}
		equal(t, created, order, "order of the runs whose jobs were ", what)
		if what == "queued" {
			s.settle(Released, all...)
		}
	}
	equal(t, 0, s.rows("job_turns"), "turns of accounts without jobs are left")
}

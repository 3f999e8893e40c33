package jobs

import (
	"fmt"
	"maps"
	"math/rand/v2"
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

// TestClosedProvider: while the jobs of a provider cannot be claimed, jobs of another provider are handed out as if the
// former had none: to all accounts in turn, of the same runs as well, to claims of all providers and to claims that list
// both.
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
	for range 2 {
		if got := s.claim(1, "p1"); len(got) != 1 || got[0].Key.Run != last {
			t.Errorf("claimed %+v, want a job of %s", got, last)
		}
	}
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

// TestAllotmentKeepsItsPromises checks what every allotment promises, on random supplies: no job twice, no limit
// exceeded, nothing left that a claim could have had, and turns that differ by at most one.
func TestAllotmentKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		s, demands := randomSupply(rand.New(rand.NewPCG(seed, 1)))
		left := &allotmentCheck{capacity: maps.Clone(s.capacity), jobs: make(map[accountAt]int), next: make(map[*span]int32)}
		for _, a := range s.accounts {
			for p, spans := range a.spans {
				for _, x := range spans {
					left.jobs[accountAt{a.id, p}] += int(x.last - x.first + 1)
					left.next[x] = x.first
				}
			}
		}
		for i, grants := range allot(s, demands, 1000) {
			if fault := left.claim(&demands[i], grants); fault != "" {
				t.Fatalf("seed %d, claim %d: %s", seed, i, fault)
			}
		}
	}
}

// An allotmentCheck contains what the claims so far have left.
type allotmentCheck struct {
	capacity map[string]int
	jobs     map[accountAt]int
	next     map[*span]int32 // the first job of each span that is left
}

// available returns how many jobs a claim could have of an account at a provider.
func (c *allotmentCheck) available(d *demand, at accountAt) int {
	if !accepts(d.providers, at.provider) {
		return 0
	}
	return min(c.jobs[at], c.capacity[at.provider])
}

// claim takes the grants of a claim, and returns what is wrong with them.
func (c *allotmentCheck) claim(d *demand, grants []grant) string {
	available, claimed := make(map[store.ID]int), make(map[store.ID]int) // by account, at the start of the claim
	for at := range c.jobs {
		available[at.account] += c.available(d, at)
	}
	total, limited := 0, false
	for _, g := range grants {
		at, n := accountAt{g.span.account, g.span.provider}, int(g.jobs())
		if n < 1 || n > c.available(d, at) || g.first != c.next[g.span] || g.last > g.span.last {
			return fmt.Sprintf("jobs %d to %d of %+v, where %d may be claimed", g.first, g.last, *g.span, c.available(d, at))
		}
		c.next[g.span] = g.last + 1
		c.jobs[at] -= n
		if c.capacity[at.provider] != unlimited {
			limited = true
			c.capacity[at.provider] -= n
		}
		claimed[at.account] += n
		total += n
	}
	for at := range c.jobs {
		if more := c.available(d, at); total > d.limit || total < d.limit && more > 0 {
			return fmt.Sprintf("%d of %d, and account %x has %d more at %s", total, d.limit, at.account[0], more, at.provider)
		}
	}
	for a, n := range claimed {
		for b, m := range available {
			if n > claimed[b]+1 && m > claimed[b] && !limited { // a provider's room may end before an account's turn
				return fmt.Sprintf("account %x got %d, account %x %d of %d", a[0], n, b[0], claimed[b], m)
			}
		}
	}
	return ""
}

// randomSupply returns a supply of up to 9 accounts, and claims of up to 4 workers.
func randomSupply(r *rand.Rand) (*supply, []demand) {
	const size = 40 // of each run, claim and limit
	s := &supply{capacity: make(map[string]int)}
	providers := []string{"a", "b", "c"}
	for _, p := range providers {
		if c := []int{0, 1 + r.IntN(size), unlimited, unlimited, unlimited}[r.IntN(5)]; c > 0 { // 0: closed
			s.capacity[p] = c
		}
	}
	for n := range 1 + r.IntN(9) {
		a := &account{id: store.ID{byte(n + 1)}, turns: make(map[string]int64), spans: make(map[string][]*span)}
		for _, p := range providers {
			if r.IntN(3) == 0 {
				continue
			}
			a.turns[p] = r.Int64N(20)
			if s.capacity[p] == 0 {
				continue
			}
			for run := range 1 + r.IntN(3) {
				of := &span{account: a.id, run: store.ID{byte(run)}, provider: p, first: r.Int32N(100)}
				of.last = of.first + r.Int32N(size)
				a.spans[p] = append(a.spans[p], of)
			}
		}
		s.accounts = append(s.accounts, a)
	}
	var demands []demand
	for range 1 + r.IntN(4) {
		listed := [][]string{nil, providers[:1], providers[:2], providers[1:]}[r.IntN(4)]
		demands = append(demands, demand{limit: 1 + r.IntN(size), providers: listed})
	}
	return s, demands
}

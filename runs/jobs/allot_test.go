package jobs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"aiv/store"
)

// TestAllotmentKeepsItsPromises checks what every allotment promises, on random supplies: no job twice, no limit
// exceeded, nothing left that a claim could have had, runs in order, and turns that differ by at most one.
func TestAllotmentKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		s, demands := randomSupply(rand.New(rand.NewPCG(seed, 1)))
		left := &allotmentCheck{capacity: maps.Clone(s.capacity), spans: make(map[accountAt][]span)}
		for _, a := range s.accounts {
			for p, spans := range a.spans {
				for _, x := range spans {
					left.spans[accountAt{a.id, p}] = append(left.spans[accountAt{a.id, p}], *x)
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
	spans    map[accountAt][]span // the oldest run first
}

// jobs returns how many jobs of an account are left that a claim could have at a provider, if any.
func (c *allotmentCheck) jobs(d *demand, at accountAt) (n int) {
	for _, x := range c.spans[at] {
		n += int(x.last - x.first + 1)
	}
	if !accepts(d.providers, at.provider) {
		return 0
	}
	return min(n, c.capacity[at.provider])
}

// claim takes the grants of a claim, and returns what is wrong with them.
func (c *allotmentCheck) claim(d *demand, grants []grant) string {
	available, claimed := make(map[store.ID]int), make(map[store.ID]int) // by account, at the start of the claim
	for at := range c.spans {
		available[at.account] += c.jobs(d, at)
	}
	n, limited := 0, false
	for _, g := range grants {
		at := accountAt{g.span.account, g.span.provider}
		spans := c.spans[at]
		if !accepts(d.providers, at.provider) || len(spans) == 0 || g.span.run != spans[0].run || g.first != spans[0].first ||
			g.last < g.first || g.last > spans[0].last {
			return fmt.Sprintf("jobs %d to %d of run %x at %s, where %+v are left", g.first, g.last, g.span.run[0], at.provider, spans)
		}
		if spans[0].first = g.last + 1; g.last == spans[0].last {
			c.spans[at] = spans[1:]
		}
		jobs := int(g.jobs())
		n += jobs
		claimed[at.account] += jobs
		if c.capacity[at.provider] != unlimited {
			limited = true
			c.capacity[at.provider] -= jobs
		}
		if c.capacity[at.provider] < 0 {
			return at.provider + " has no room for so many"
		}
	}
	if n > d.limit {
		return fmt.Sprintf("%d of %d", n, d.limit)
	}
	for at := range c.spans {
		if more := c.jobs(d, at); n < d.limit && more > 0 {
			return fmt.Sprintf("%d of %d, though account %x has %d more at %s", n, d.limit, at.account[0], more, at.provider)
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
		switch r.IntN(5) {
		case 0: // closed
		case 1:
			s.capacity[p] = 1 + r.IntN(size)
		default:
			s.capacity[p] = unlimited
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

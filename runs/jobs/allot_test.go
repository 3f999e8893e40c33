package jobs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"aiv/store"
)

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

package jobs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"aiv/store"
)

// TestAllotmentKeepsItsPromises checks what every allotment promises on random supplies: no job twice, no limit exceeded, nothing left that
// a claim could have had, runs in order, and turns that differ by at most one.
func TestAllotmentKeepsItsPromises(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, demands := randomSupply(r)
		capacity := maps.Clone(s.capacity)
		jobs := make(map[store.ID]map[string]int)
		left := make(map[*span]int32)
		before := make(map[*span]*span) // the next older span of the same account and provider
		for _, a := range s.accounts {
			jobs[a.id] = make(map[string]int)
			for p, spans := range a.spans {
				for i, x := range spans {
					left[x] = x.last - x.first + 1
					jobs[a.id][p] += int(left[x])
					if i > 0 {
						before[x] = spans[i-1]
					}
				}
			}
		}
		fail := func(format string, args ...any) { t.Fatalf("seed %d: %s", seed, fmt.Sprintf(format, args...)) }

		grants := allot(s, demands, 1000)
		taken := make(map[*span]int32) // the first job that is left
		for i, d := range demands {
			claimed := make(map[store.ID]int)
			available := make(map[store.ID]int) // by d, at its start
			for id, by := range jobs {
				for p, n := range by {
					if accepts(d.providers, p) {
						available[id] += min(n, capacity[p])
					}
				}
			}
			n, limited := 0, false
			for _, g := range grants[i] {
				if next, ok := taken[g.span]; ok && g.first != next {
					fail("jobs of a span were handed out out of order or twice: %d after %d", g.first, next)
				}
				taken[g.span] = g.last + 1
				if left[before[g.span]] > 0 {
					fail("claim %d got jobs of a run before those of an older one", i)
				}
				left[g.span] -= g.jobs()
				if !accepts(d.providers, g.span.provider) {
					fail("claim %d got jobs of %s", i, g.span.provider)
				}
				n += int(g.jobs())
				claimed[g.span.account] += int(g.jobs())
				jobs[g.span.account][g.span.provider] -= int(g.jobs())
				if capacity[g.span.provider] != unlimited {
					limited = true
					capacity[g.span.provider] -= int(g.jobs())
				}
			}
			if n > d.limit {
				fail("claim %d of %d got %d", i, d.limit, n)
			}
			for p, room := range capacity {
				if room < 0 {
					fail("%d claims more than %s has room for", -room, p)
				}
				for id, by := range jobs {
					if n < d.limit && by[p] > 0 && room > 0 && accepts(d.providers, p) {
						fail("claim %d got %d of %d, though account %x has %d more at %s", i, n, d.limit, id[0], by[p], p)
					}
				}
			}
			if limited {
				continue // a provider's room may end before an account's turn
			}
			for a, n := range claimed {
				for b, m := range available {
					if n > claimed[b]+1 && m > claimed[b] {
						fail("claim %d: account %x got %d, account %x %d of %d", i, a[0], n, b[0], claimed[b], m)
					}
				}
			}
		}
	}
}

func randomSupply(r *rand.Rand) (*supply, []demand) {
	s := &supply{capacity: make(map[string]int)}
	providers := []string{"a", "b", "c"}
	for _, p := range providers {
		switch r.IntN(4) {
		case 0: // closed
		case 1:
			s.capacity[p] = 1 + r.IntN(20)
		default:
			s.capacity[p] = unlimited
		}
	}
	for n := range r.IntN(6) {
		a := &account{id: store.ID{byte(n + 1)}, anyTurn: r.Int64N(1000), turns: make(map[string]int64), spans: make(map[string][]*span), more: make(map[string]bool)}
		for _, p := range providers {
			if s.capacity[p] == 0 || r.IntN(3) == 0 {
				continue
			}
			a.turns[p] = r.Int64N(1000)
			for k := range r.IntN(4) {
				first := int32(1 + r.IntN(100))
				a.spans[p] = append(a.spans[p], &span{account: a.id, run: store.ID{byte(k)}, provider: p, first: first, last: first + r.Int32N(40)})
			}
		}
		s.accounts = append(s.accounts, a)
	}
	var demands []demand
	for range 1 + r.IntN(5) {
		d := demand{limit: 1 + r.IntN(50)}
		if r.IntN(3) == 0 {
			d.providers = providers[:r.IntN(3)]
		}
		demands = append(demands, d)
	}
	return s, demands
}

// TestTurnsGoOn: claims of one job serve the accounts in turn, whichever providers they ask.
func TestTurnsGoOn(t *testing.T) {
	t.Parallel()
	large := func(id byte, providers ...string) *account {
		a := &account{id: store.ID{id}, turns: make(map[string]int64), spans: make(map[string][]*span)}
		for _, p := range providers {
			a.turns[p] = int64(id)
			a.spans[p] = []*span{{account: a.id, provider: p, first: 1, last: 1000}}
		}
		return a
	}
	s := &supply{capacity: map[string]int{"a": unlimited, "b": unlimited}, accounts: []*account{large(1, "a", "b"), large(2, "a"), large(3, "b")}}
	got := ""
	for n := range 12 {
		d := []demand{{limit: 1}, {limit: 1, providers: []string{"a"}}, {limit: 1, providers: []string{"b"}}}[n%3]
		g := allot(s, []demand{d}, int64(100*n+100))[0][0]
		got += fmt.Sprintf("%d%s ", g.span.account[0], g.span.provider)
	}
	// Claims of any provider (the first of three) serve 1, 2 and 3 in turn, those of b alone 1 and 3.
	const want = "1a 2a 1b 2a 1a 3b 3b 2a 1b 1a 2a 3b "
	if got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

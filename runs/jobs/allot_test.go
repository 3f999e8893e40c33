package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"aiv/store"
)

// TestAllotmentKeepsItsPromises checks what every allotment promises on random supplies: no job twice, no limit exceeded, nothing left that
// a claim could have had, runs in order, and turns that differ by at most one.
func TestAllotmentKeepsItsPromises(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, demands := randomSupply(r, 40)
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

// randomSupply returns a supply of up to 9 accounts, and claims of up to 4 workers. Each run, claim and limit has up to
// size jobs.
func randomSupply(r *rand.Rand, size int) (*supply, []demand) {
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
				of.last = of.first + r.Int32N(int32(size))
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

// TestFewAccountsAreEnough: claims of n jobs get the same grants from the first n accounts of each provider as from
// all.
func TestFewAccountsAreEnough(t *testing.T) {
	t.Parallel()
	fewer := 0
	for seed := range uint64(3000) {
		all, demands := randomSupply(rand.New(rand.NewPCG(seed, 1)), 4)
		few, _ := randomSupply(rand.New(rand.NewPCG(seed, 1)), 4)
		_, jobs := wanted(demands)
		if few.leaveOut(jobs) {
			fewer++
		}
		want, got := grantsOf(allot(all, demands, 1000)), grantsOf(allot(few, demands, 1000))
		if got != want {
			t.Fatalf("seed %d: the first %d accounts of each provider get %s, want %s", seed, jobs, got, want)
		}
	}
	if fewer < 500 {
		t.Errorf("only %d supplies had more accounts than jobs were claimed", fewer)
	}
}

// leaveOut removes the jobs that readSupply does not return for claims of n jobs. It reports whether there are any.
func (s *supply) leaveOut(n int) (some bool) {
	for p := range s.capacity {
		var at []*account
		for _, a := range s.accounts {
			if len(a.spans[p]) > 0 {
				at = append(at, a)
			}
		}
		slices.SortFunc(at, func(a, b *account) int { return cmp.Or(cmp.Compare(a.turns[p], b.turns[p]), a.id.Compare(b.id)) })
		for _, a := range at[min(n, len(at)):] {
			delete(a.spans, p)
			some = true
		}
	}
	return some
}

func grantsOf(claims [][]grant) (out string) {
	for i, grants := range claims {
		out += fmt.Sprintf("claim %d:", i)
		for _, g := range grants {
			out += fmt.Sprintf(" %d%s%d-%d", g.span.account[0], g.span.provider, g.first, g.last)
		}
		out += "; "
	}
	return out
}

// TestTurnsGoOn: claims of one job serve the accounts in turn, whichever providers they accept.
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
	// Each account gets a third: claims of any provider, the first of three, serve 1, as those of a and b serve 2 and 3.
	const want = "1a 2a 3b 1b 2a 3b 1a 2a 3b 1b 2a 3b "
	if got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

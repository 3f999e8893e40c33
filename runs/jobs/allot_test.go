package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aiv/store"
)

// TestAllotmentKeepsItsPromises checks what every allotment promises, on random supplies: no job twice, no limit
// exceeded, nothing left that a claim could have had, runs in order, and turns that differ by at most one.
func TestAllotmentKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		s, demands := randomSupply(rand.New(rand.NewPCG(seed, 1)), 40)
		c := &allotmentCheck{capacity: maps.Clone(s.capacity), next: make(map[*span]int32), older: make(map[*span]*span)}
		for _, a := range s.accounts {
			for _, spans := range a.spans {
				for i, x := range spans {
					c.spans, c.next[x] = append(c.spans, x), x.first
					if i > 0 {
						c.older[x] = spans[i-1]
					}
				}
			}
		}
		for i, grants := range allot(s, demands, 1000) {
			if fault := c.claim(&demands[i], grants); fault != "" {
				t.Fatalf("seed %d, claim %d: %s", seed, i, fault)
			}
		}
	}
}

// An allotmentCheck follows the grants of claims.
type allotmentCheck struct {
	capacity map[string]int // that is left
	spans    []*span
	next     map[*span]int32 // the first job that is left
	older    map[*span]*span // the next older span of the same account and provider
}

// left returns how many jobs each account has at each provider.
func (c *allotmentCheck) left() map[accountAt]int {
	jobs := make(map[accountAt]int)
	for _, x := range c.spans {
		jobs[accountAt{x.account, x.provider}] += int(x.last - c.next[x] + 1)
	}
	return jobs
}

// claim returns what is wrong with the grants of a claim.
func (c *allotmentCheck) claim(d *demand, grants []grant) string {
	available, claimed := make(map[store.ID]int), make(map[store.ID]int) // by account, at the start of the claim
	for at, n := range c.left() {
		if accepts(d.providers, at.provider) {
			available[at.account] += min(n, c.capacity[at.provider])
		}
	}
	n, limited := 0, false
	for _, g := range grants {
		x := g.span
		older := c.older[x]
		switch {
		case g.first != c.next[x] || g.last < g.first || g.last > x.last:
			return fmt.Sprintf("jobs %d to %d of %d to %d", g.first, g.last, c.next[x], x.last)
		case older != nil && c.next[older] <= older.last:
			return "jobs of a run before those of an older one"
		case !accepts(d.providers, x.provider):
			return "jobs of " + x.provider
		}
		c.next[x] = g.last + 1
		n += int(g.jobs())
		claimed[x.account] += int(g.jobs())
		if c.capacity[x.provider] != unlimited {
			limited = true
			c.capacity[x.provider] -= int(g.jobs())
		}
	}
	for p, room := range c.capacity {
		if room < 0 {
			return fmt.Sprintf("%d more than %s has room for", -room, p)
		}
	}
	for at, more := range c.left() {
		if n < d.limit && more > 0 && c.capacity[at.provider] > 0 && accepts(d.providers, at.provider) {
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
	if n > d.limit {
		return fmt.Sprintf("%d of %d", n, d.limit)
	}
	return ""
}

// newAccount returns an account without jobs.
func newAccount(id byte) *account {
	return &account{id: store.ID{id}, turns: make(map[string]int64), spans: make(map[string][]*span)}
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
		a := newAccount(byte(n + 1))
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
		slices.SortFunc(at, func(a, b *account) int {
			return cmp.Or(cmp.Compare(a.turns[p], b.turns[p]), a.id.Compare(b.id))
		})
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
	s := &supply{capacity: map[string]int{"a": unlimited, "b": unlimited}}
	for id, providers := range map[byte]string{1: "a b", 2: "a", 3: "b"} {
		a := newAccount(id)
		for p := range strings.FieldsSeq(providers) {
			a.turns[p], a.spans[p] = int64(id), []*span{{account: a.id, provider: p, first: 1, last: 1000}}
		}
		s.accounts = append(s.accounts, a)
	}
	got := ""
	for n := range 12 {
		d := []demand{{limit: 1}, {limit: 1, providers: []string{"a"}}, {limit: 1, providers: []string{"b"}}}[n%3]
		g := allot(s, []demand{d}, int64(100*n+100))[0][0]
		got += fmt.Sprintf("%d%s ", g.span.account[0], g.span.provider)
	}
	// Each account gets a third: claims of any provider, the first of three, serve 1, as those of a and b serve 2 and 3.
	equal(t, "1a 2a 3b 1b 2a 3b 1a 2a 3b 1b 2a 3b ", got, "served")
}

// TestClaimsTogetherAcceptAll: claims together accept all providers if one of them does.
func TestClaimsTogetherAcceptAll(t *testing.T) {
	t.Parallel()
	all, a, b := demand{limit: 1}, demand{limit: 2, providers: []string{"a"}}, demand{limit: 3, providers: []string{"b"}}
	for want, demands := range map[string][]demand{
		`[]string{"a", "b"} 5`: {a, b}, `[]string(nil) 3`: {all, a}, `[]string(nil) 6`: {a, all, b},
	} {
		providers, jobs := wanted(demands)
		equal(t, want, fmt.Sprintf("%#v %d", providers, jobs))
	}
}

// TestFreshSpanMayBeQueued: a claim need not start the run of a fresh span whose first job is not that of its model.
func TestFreshSpanMayBeQueued(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		span span
		want bool
	}{
		{span{fresh: true, modelNo: 1, firstRead: 1, first: 3, last: 10}, false},
		{span{fresh: true, modelNo: 1, firstRead: 2, first: 3, last: 10}, true},
		{span{fresh: true, modelNo: 3, firstRead: 21, first: 21, last: 30}, false},
		{span{fresh: true, modelNo: 3, firstRead: 22, first: 22, last: 30}, true},
		{span{fresh: true, modelNo: 3, firstRead: 3, first: 4, last: 3}, false}, // the only job of its model
		{span{firstRead: 1, first: 1, last: 10, attempt: 1}, true},
	} {
		equal(t, test.want, test.span.begun(), fmt.Sprintf("%+v", test.span))
	}
}

package jobs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"aiv/store"
)

// TestFewAccountsAreEnough: claims of n jobs get the same grants from the first n accounts of each provider as from
// all.
func TestFewAccountsAreEnough(t *testing.T) {
	t.Parallel()
	fewer := 0
	for seed := range uint64(3000) {
		all, demands := manyAccounts(rand.New(rand.NewPCG(seed, 1)))
		few, _ := manyAccounts(rand.New(rand.NewPCG(seed, 1)))
		_, jobs := wanted(demands)
		if few.leaveOut(demands, jobs) {
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

// manyAccounts returns a supply of up to 9 accounts, and claims of up to 12 jobs.
func manyAccounts(r *rand.Rand) (*supply, []demand) {
	s := &supply{capacity: make(map[string]int)}
	providers := []string{"a", "b", "c"}
	for _, p := range providers {
		switch r.IntN(5) {
		case 0: // closed
		case 1:
			s.capacity[p] = 1 + r.IntN(4)
		default:
			s.capacity[p] = unlimited
		}
	}
	for n := range 1 + r.IntN(9) {
		a := &account{id: store.ID{byte(n + 1)}, anyTurn: r.Int64N(20), turns: make(map[string]int64), spans: make(map[string][]*span)}
		for _, p := range providers {
			if r.IntN(3) == 0 {
				continue
			}
			a.turns[p] = r.Int64N(20)
			if s.capacity[p] == 0 {
				continue
			}
			for k := range 1 + r.Int32N(2) {
				a.spans[p] = append(a.spans[p], &span{account: a.id, provider: p, first: 10 * k, last: 10*k + r.Int32N(3)})
			}
		}
		s.accounts = append(s.accounts, a)
	}
	var demands []demand
	for range 1 + r.IntN(3) {
		listed := [][]string{nil, providers[:1], providers[:2], providers[1:]}[r.IntN(4)]
		demands = append(demands, demand{limit: 1 + r.IntN(4), providers: listed})
	}
	return s, demands
}

// leaveOut removes the jobs that readSupply and readSupplyOfAny do not return for claims of n jobs. It reports whether
// there are any.
func (s *supply) leaveOut(demands []demand, n int) (some bool) {
	for p := range s.capacity {
		var at []*account
		for _, a := range s.accounts {
			if len(a.spans[p]) > 0 {
				at = append(at, a)
			}
		}
		first := make(map[*account]bool)
		for _, d := range demands {
			turn := func(a *account) int64 { return a.turns[p] }
			if d.providers == nil {
				turn = func(a *account) int64 { return a.anyTurn }
			}
			slices.SortFunc(at, func(a, b *account) int { return cmp.Or(cmp.Compare(turn(a), turn(b)), a.id.Compare(b.id)) })
			for _, a := range at[:min(n, len(at))] {
				first[a] = true
			}
		}
		for _, a := range at {
			if !first[a] {
				delete(a.spans, p)
				some = true
			}
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

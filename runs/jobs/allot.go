package jobs

import (
	"cmp"
	"container/heap"
	"slices"
)

// allot shares the supply among the claims, one after the other, and returns the grants of each. Claims of one
// transaction get the same grants as claims of consecutive transactions.
//
// In each claim the accounts take turns: the one with the lowest turn gets one job and goes to the end. It gets a job
// of the provider where its turn is lowest.
//
// A claim orders the accounts by their lowest turn at any of the providers that it accepts, and gives an account that
// was served the highest turns at all of these. Reading the first n accounts of each provider is therefore enough to
// hand out n jobs.
//
// If only one account has jobs, only its turn at the provider that served it changes, because each turn is a row to
// write. An account that arrives later waits for one job of the first account, which then gets the highest turns.
//
// Turns are numbered from firstTurn on.
func allot(s *supply, demands []demand, firstTurn int64) [][]grant {
	grants := make([][]grant, len(demands))
	turn := firstTurn
	_, jobs := wanted(demands)
	alone := len(s.accounts) == 1 && jobs > 1 // for more than one job, a second account would have been read
	for i := range demands {
		grants[i] = s.serve(&demands[i], &turn, alone)
	}
	return grants
}

// A demand is one claim: how many jobs it requests, and of which providers; nil: of all.
type demand struct {
	limit     int // 0: the worker is revoked
	providers []string
}

// accepts reports whether a list of providers, nil for all, has the provider.
func accepts(providers []string, provider string) bool {
	return providers == nil || slices.Contains(providers, provider)
}

// A grant is a range of jobs that one claim gets.
type grant struct {
	span        *span
	first, last int32
	description *description // nil until it is read
}

func (g *grant) jobs() int32 { return g.last - g.first + 1 }

// serve returns the grants of one claim, and counts the turns that it gives. The last account with jobs gets the rest at
// once. With alone, its turns at other providers stay.
func (s *supply) serve(d *demand, turn *int64, alone bool) (grants []grant) {
	q := &turnQueue{}
	for _, a := range s.accounts {
		// An account without a job for this claim is left out.
		if a.next(d, s.capacity) != "" {
			q.entries = append(q.entries, turnEntry{a, a.turn(d, s.capacity)})
		}
	}
	heap.Init(q)
	for left := d.limit; left > 0 && q.Len() > 0; {
		a := q.entries[0].account
		provider := a.next(d, s.capacity)
		if provider == "" { // another account has used up the provider's capacity
			heap.Pop(q)
			continue
		}
		// Another account has used up the provider, so another provider serves this account, at a later turn.
		if due := a.turn(d, s.capacity); due != q.entries[0].turn {
			q.entries[0].turn = due
			heap.Fix(q, 0)
			continue
		}
		// An account gets one job at a time, unless it is the last one in the queue.
		n := 1
		if q.Len() == 1 {
			n = left
		}
		// The grant may have fewer jobs, because all its jobs are of one span.
		g := a.take(provider, min(n, s.capacity[provider]))
		n = int(g.jobs())
		left -= n
		if s.capacity[provider] != unlimited {
			s.capacity[provider] -= n
		}
		grants = extend(grants, g)
		a.served = true
		if !alone {
			a.moveToEnd(d, provider, turn)
		}
		// The provider that has served gets the account's highest turn.
		*turn++
		a.turns[provider] = *turn
		// Without further jobs for the claim, the turn is 0. The account is then first, and leaves the queue.
		q.entries[0].turn = a.turn(d, s.capacity)
		heap.Fix(q, 0)
	}
	return grants
}

// next returns the provider that serves the account next, or nothing if no provider can.
func (a *account) next(d *demand, capacity map[string]int) (provider string) {
	for p, spans := range a.spans {
		if len(spans) == 0 || capacity[p] <= 0 || !accepts(d.providers, p) {
			continue
		}
		if provider == "" || a.turns[p] < a.turns[provider] || a.turns[p] == a.turns[provider] && p < provider {
			provider = p
		}
	}
	return provider
}

// turn returns the account's turn in the order of a claim.
func (a *account) turn(d *demand, capacity map[string]int) int64 {
	return a.turns[a.next(d, capacity)]
}

// moveToEnd gives the account the highest turns at the providers of a claim, except at the one that has just served it.
// The providers keep their order, so that each serves the account in turn. turn is the latest one given.
func (a *account) moveToEnd(d *demand, except string, turn *int64) {
	var others []string
	for p := range a.turns {
		if p != except && accepts(d.providers, p) {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(p, q string) int { return cmp.Or(cmp.Compare(a.turns[p], a.turns[q]), cmp.Compare(p, q)) })
	for _, p := range others {
		*turn++
		a.turns[p] = *turn
	}
}

// take removes up to n jobs from the first span of a provider.
func (a *account) take(provider string, n int) grant {
	s := a.spans[provider][0]
	g := grant{span: s, first: s.first, last: min(s.last, s.first+int32(n)-1)}
	if s.first = g.last + 1; s.first > s.last {
		a.spans[provider] = a.spans[provider][1:]
	}
	return g
}

// extend appends a grant, or adds its jobs to the grant of the same span.
func extend(grants []grant, g grant) []grant {
	// There are few grants: one for each span from which the claim got jobs.
	for i := range grants {
		if grants[i].span == g.span { // a span's jobs are taken in order
			grants[i].last = g.last
			return grants
		}
	}
	return append(grants, g)
}

// A turnQueue is a heap of the accounts that wait, the lowest turn first.
type turnQueue struct{ entries []turnEntry }

type turnEntry struct {
	account *account
	turn    int64
}

func (q *turnQueue) Len() int { return len(q.entries) }

func (q *turnQueue) Less(i, j int) bool {
	a, b := &q.entries[i], &q.entries[j]
	if a.turn != b.turn {
		return a.turn < b.turn
	}
	return a.account.id.Compare(b.account.id) < 0
}

func (q *turnQueue) Swap(i, j int) { q.entries[i], q.entries[j] = q.entries[j], q.entries[i] }

// Push is not used: accounts only leave.
func (q *turnQueue) Push(x any) { q.entries = append(q.entries, x.(turnEntry)) }

// Pop removes the last account, as package heap requires.
func (q *turnQueue) Pop() any {
	last := q.entries[len(q.entries)-1]
	q.entries = q.entries[:len(q.entries)-1]
	return last
}

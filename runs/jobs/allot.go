package jobs

import (
	"container/heap"
	"slices"
	"time"

	"aiv/store"
)

// A supply is what a transaction may hand out, as it found it under the lock of claims.
type supply struct {
	rooms    map[string]int // open providers: how many jobs may be claimed; unlimited or more than 0
	accounts []*account
}

// unlimited is the room of a provider without limits.
const unlimited = 1 << 30

// An account has jobs to hand out.
type account struct {
	id       store.ID
	turns    map[string]int64   // by provider: when that served it last
	anyTurn  int64              // when a claim of all providers served it last
	served   bool               // by this transaction
	spans    map[string][]*span // by open provider, oldest run first
	complete map[string]bool    // whether spans are all that the provider's queue has
}

// A span is a range of jobs of one run and model that can be handed out: either fresh, or given back by an earlier attempt.
type span struct {
	account, run store.ID
	provider     string
	created      time.Time // the run
	modelNo      int16     // of a fresh span
	row          int32     // the ordinal in the key of a lease's row
	first, last  int32     // what is left of it

	fresh     bool
	attempt   int16 // of the latest claim; 0 if fresh
	tries     int16
	startedAt time.Time
}

// A demand is one claim: how many jobs it wants, and of which providers; nil: of all.
type demand struct {
	limit     int
	providers []string
	all       bool // all that have jobs, even if they are listed
}

func (d *demand) accepts(provider string) bool {
	return d.providers == nil || slices.Contains(d.providers, provider)
}

// A grant is a range of jobs that one claim gets.
type grant struct {
	span        *span
	first, last int32
}

// allot shares the supply among the claims, one after the other, and returns the grants of each. The claims of one
// transaction are thus what claims of consecutive transactions would be.
//
// In each claim the accounts take turns: the one that was served longest ago gets one job and goes to the end. Claims of all
// providers have an order of their own, so that they serve each account in turn, whichever providers its jobs are for. Other
// claims go by when the providers that they accept served the account: an account that one provider serves all the time has
// its turn at another all the same. Of an account's providers, the one that served it longest ago serves it.
//
// Turns are numbered from base on.
func allot(s *supply, demands []demand, base int64) [][]grant {
	grants := make([][]grant, len(demands))
	turn := base
	for i := range demands {
		grants[i] = s.serve(&demands[i], &turn)
	}
	return grants
}

func (s *supply) serve(d *demand, turn *int64) (grants []grant) {
	q := &turnQueue{}
	for _, a := range s.accounts {
		if a.next(d, s.rooms) != "" {
			q.entries = append(q.entries, turnEntry{a, a.latest(d)})
		}
	}
	heap.Init(q)
	for left := d.limit; left > 0 && q.Len() > 0; {
		a := q.entries[0].account
		provider := a.next(d, s.rooms)
		if provider == "" { // another account has used up the provider's room
			heap.Pop(q)
			continue
		}
		n := 1
		if q.Len() == 1 {
			n = left
		}
		g := a.take(provider, min(n, s.rooms[provider]))
		n = int(g.last - g.first + 1)
		left -= n
		if s.rooms[provider] != unlimited {
			s.rooms[provider] -= n
		}
		grants = extend(grants, g)
		*turn++
		a.turns[provider], a.served = *turn, true
		if d.all {
			a.anyTurn = *turn
		}
		q.entries[0].latest = *turn
		heap.Fix(q, 0)
	}
	return grants
}

// next returns the provider that serves the account next, or nothing if no provider can.
func (a *account) next(d *demand, rooms map[string]int) (provider string) {
	for p, spans := range a.spans {
		if len(spans) == 0 || rooms[p] <= 0 || !d.accepts(p) {
			continue
		}
		if provider == "" || a.turns[p] < a.turns[provider] || a.turns[p] == a.turns[provider] && p < provider {
			provider = p
		}
	}
	return provider
}

// latest returns when the account was served last, as far as it matters to the claim.
func (a *account) latest(d *demand) (turn int64) {
	if d.all {
		return a.anyTurn
	}
	for p, t := range a.turns {
		if d.accepts(p) {
			turn = max(turn, t)
		}
	}
	return turn
}

// take removes up to n jobs from the first span of a provider.
func (a *account) take(provider string, n int) grant {
	s := a.spans[provider][0]
	g := grant{s, s.first, min(s.last, s.first+int32(n)-1)}
	if s.first = g.last + 1; s.first > s.last {
		a.spans[provider] = a.spans[provider][1:]
	}
	return g
}

// extend appends a grant, or adds its jobs to the grant of the same span.
func extend(grants []grant, g grant) []grant {
	for i := range grants {
		if grants[i].span == g.span && grants[i].last+1 == g.first {
			grants[i].last = g.last
			return grants
		}
	}
	return append(grants, g)
}

// A turnQueue is a heap of the accounts that wait, the one served longest ago first.
type turnQueue struct{ entries []turnEntry }

type turnEntry struct {
	account *account
	latest  int64
}

func (q *turnQueue) Len() int { return len(q.entries) }

func (q *turnQueue) Less(i, j int) bool {
	a, b := &q.entries[i], &q.entries[j]
	if a.latest != b.latest {
		return a.latest < b.latest
	}
	return a.account.id.Compare(b.account.id) < 0
}

func (q *turnQueue) Swap(i, j int) { q.entries[i], q.entries[j] = q.entries[j], q.entries[i] }

// Push is not used: accounts only leave.
func (q *turnQueue) Push(x any) { q.entries = append(q.entries, x.(turnEntry)) }

// Pop removes the last account, as package heap asks.
func (q *turnQueue) Pop() any {
	last := q.entries[len(q.entries)-1]
	q.entries = q.entries[:len(q.entries)-1]
	return last
}

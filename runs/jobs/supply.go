package jobs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aiv/store"
)

// A supply contains the jobs that a transaction may hand out, as read under the lock of claims.
type supply struct {
	capacity map[string]int // of each open provider: how many jobs may be claimed; unlimited or more than 0
	accounts []*account
}

// unlimited is the capacity of a provider without limits.
const unlimited = 1 << 30

// An account has jobs to hand out.
type account struct {
	id     store.ID
	turns  map[string]int64   // by provider
	read   map[string]int64   // the turns as they were read
	served bool               // by this transaction
	spans  map[string][]*span // by open provider, oldest run first
	more   map[string]bool    // whether the provider may have more spans when those that were read are used up
}

// A span is a range of jobs of one run and model that can be handed out: either fresh (never claimed), or given back by
// an earlier attempt.
type span struct {
	account, run store.ID
	provider     string
	created      time.Time // of the run
	modelNo      int16     // of a fresh span
	firstRead    int32     // first as it was read: the ordinal of a lease's row, or next_ordinal of a row of the queue
	first, last  int32     // what is left of it

	fresh     bool
	attempt   int16     // of the latest claim; 0 if fresh
	tries     int16     // see lease
	startedAt time.Time // of the first attempt; zero if fresh
}

// key returns the key of the first job that the span had when it was read.
func (s *span) key() Key { return Key{s.account, s.run, s.firstRead} }

// begun reports whether jobs of the span's run and model were claimed before, so that the run has started.
func (s *span) begun() bool {
	if !s.fresh {
		return true
	}
	perModel := s.last / int32(s.modelNo) // the last job of a fresh span is the last one of its model
	return s.firstRead > s.last-perModel+1
}

// A supplyRow is a row of readSupply.
type supplyRow struct {
	now           time.Time
	arrivals, due bool

	provider *string // nil, as all that follow: no provider is open
	capacity *int    // nil: no limit

	account  *store.ID // nil, as all that follow: no account has a turn there
	codes    []string  // the providers at which the account has a turn
	turns    []int64   // at these providers
	maxSpans *int      // how many fresh spans were read at most, and how many others

	fresh          *bool // nil, as all that follow: the account has no jobs there
	run            *store.ID
	created        *time.Time
	modelNo        *int16
	first, last    *int32
	attempt, tries *int16
	started        *time.Time // nil if fresh
}

// columns returns where the columns of readSupply are scanned to, in their order.
func (r *supplyRow) columns() []any {
	return []any{&r.now, &r.arrivals, &r.due, &r.provider, &r.capacity, &r.account, &r.codes, &r.turns, &r.maxSpans,
		&r.fresh, &r.run, &r.created, &r.modelNo, &r.first, &r.last, &r.attempt, &r.tries, &r.started}
}

// A supplyBuilder builds a supply from rows. Each row is added as it is read, so that the rows of a large claim are not
// collected first.
type supplyBuilder struct {
	supply   *supply
	idle     turnKeys
	accounts map[store.ID]*account
	counts   map[accountAt]spanCount // of rows so far
}

// A spanCount counts the spans of an account at a provider that were read.
type spanCount struct{ fresh, others int }

func newSupplyBuilder() *supplyBuilder {
	return &supplyBuilder{supply: &supply{capacity: make(map[string]int)}, accounts: make(map[store.ID]*account), counts: make(map[accountAt]spanCount)}
}

// add adds a row, which has one span or says that there is none.
func (b *supplyBuilder) add(r *supplyRow) {
	if r.provider == nil {
		return
	}
	b.supply.capacity[*r.provider] = unlimited
	if r.capacity != nil {
		b.supply.capacity[*r.provider] = *r.capacity
	}
	if r.account == nil {
		return
	}
	a := b.accounts[*r.account]
	if a == nil {
		a = &account{id: *r.account, turns: make(map[string]int64), spans: make(map[string][]*span), more: make(map[string]bool)}
		// Every row of an account repeats its turns, at all providers.
		for i, code := range r.codes {
			a.turns[code] = r.turns[i]
		}
		a.read = maps.Clone(a.turns)
		b.accounts[a.id] = a
		b.supply.accounts = append(b.supply.accounts, a)
	}
	at := accountAt{a.id, *r.provider}
	n := b.counts[at]
	switch {
	// The account has a turn and no jobs.
	case r.fresh == nil:
		b.idle.add(at.account, at.provider)
		return
	case *r.fresh:
		n.fresh++
	default:
		n.others++
	}
	b.counts[at] = n
	// If as many spans were read as were asked for, there may be more. readSupply also leaves out fresh spans behind
	// others with more than $2 jobs together, but the claims of this transaction cannot use the others up.
	a.more[at.provider] = n.fresh == *r.maxSpans || n.others == *r.maxSpans
	a.spans[at.provider] = append(a.spans[at.provider], r.span())
}

// done returns the supply, and the turns of accounts that have no jobs to hand out.
func (b *supplyBuilder) done() (*supply, turnKeys) {
	for _, a := range b.supply.accounts {
		for _, spans := range a.spans {
			slices.SortStableFunc(spans, compareSpans)
		}
	}
	return b.supply, b.idle
}

// span returns the span of a row that has one.
func (r *supplyRow) span() *span {
	s := &span{account: *r.account, run: *r.run, provider: *r.provider, created: *r.created, modelNo: *r.modelNo, firstRead: *r.first,
		first: *r.first, last: *r.last, fresh: *r.fresh, attempt: *r.attempt, tries: *r.tries}
	if r.started != nil {
		s.startedAt = *r.started
	}
	return s
}

// compareSpans orders by run, the oldest first, and within a run puts jobs that were given back before fresh ones.
func compareSpans(a, b *span) int {
	if c := cmp.Or(a.created.Compare(b.created), a.run.Compare(b.run)); c != 0 {
		return c
	}
	if a.fresh != b.fresh {
		if b.fresh {
			return -1
		}
		return 1
	}
	// Both are ordinals of one run, so the difference does not overflow.
	return int(a.first - b.first)
}

package jobs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// queues contains what a transaction read under the lock of claims.
type queues struct {
	now     time.Time
	turn    int64 // the transaction numbers turns from here on
	supply  *supply
	idle    turnKeys // of accounts without jobs to hand out
	changed bool     // the transaction admitted jobs or deleted turns
}

// An accountAt is an account at a provider.
type accountAt struct {
	account  store.ID
	provider string
}

// turnKeys are keys of rows of job_turns, each once.
type turnKeys struct {
	accounts  []store.ID
	providers []string
	seen      map[accountAt]bool
}

func (k *turnKeys) add(account store.ID, provider string) {
	at := accountAt{account, provider}
	if k.seen[at] {
		return
	}
	if k.seen == nil {
		k.seen = make(map[accountAt]bool)
	}
	k.seen[at] = true
	k.accounts, k.providers = append(k.accounts, account), append(k.providers, provider)
}

// readQueues begins a transaction that hands out jobs. It admits arrived runs and due retries before it reads the jobs that can be
// handed out.
//
// An account whose last jobs were canceled keeps its turn until it is read. It may displace an account that has jobs. Its turn is
// deleted and the supply is read again, for twice as many accounts each time.
func (d *Dispatcher) readQueues(ctx context.Context, conn *pgx.Conn, demands []demand) (*queues, error) {
	providers, want := wanted(demands)
	q := &queues{}
	backlog := false
	read := func(b *pgx.Batch) error {
		s := newSupplyBuilder()
		collect := func(rows pgx.Rows) error {
			s.statement++
			var r supplyRow
			_, err := pgx.ForEachRow(rows, r.columns(), func() error {
				s.add(&r)
				return nil
			})
			q.now, backlog = r.now, backlog || r.arrivals || r.due
			return err
		}
		if slices.ContainsFunc(demands, func(d demand) bool { return d.providers == nil }) {
			b.Queue(readSupplyOfAny, d.outage.Reachable(citusSupplyOfAny), providers, want).Query(collect)
		}
		if slices.ContainsFunc(demands, func(d demand) bool { return d.providers != nil }) {
			b.Queue(readSupply, d.outage.Reachable(citusSupply), providers, want).Query(collect)
		}
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		q.supply, q.idle = s.done()
		return nil
	}
	var b pgx.Batch
	queueBegin(&b, &q.turn)
	if err := read(&b); err != nil {
		return nil, err
	}
	if backlog {
		q.changed = true
		var b pgx.Batch
		if err := d.admitArrivalsAndRetries(ctx, conn, &b, q.turn); err != nil {
			return nil, err
		}
		if err := read(&b); err != nil {
			return nil, err
		}
	}
	for len(q.idle.accounts) > 0 {
		q.changed = true
		want = min(2*want, maxBatchClaims)
		var b pgx.Batch
		b.Queue(endTurns, citusEndTurns, q.idle.accounts, q.idle.providers)
		if err := read(&b); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// queueBegin begins a transaction that takes the lock of claims, and sets the first turn that it may give.
func queueBegin(b *pgx.Batch, turn *int64) {
	b.Queue("BEGIN")
	b.Queue(lockClaims).QueryRow(func(row pgx.Row) error {
		var number int64
		err := row.Scan(nil, nil, &number)
		*turn = number << 20
		return err
	})
}

// admitArrivalsAndRetries admits arrived runs and due retries: on Citus before it returns, otherwise by the batch.
func (d *Dispatcher) admitArrivalsAndRetries(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, turn int64) error {
	if store.IsCitus(conn) {
		return d.admitOnCitus(ctx, conn, turn)
	}
	b.Queue(admitArrivals, turn)
	b.Queue(admitDue, turn)
	return nil
}

// wanted returns the providers that any claim accepts (nil: all), and the number of jobs that the claims request.
func wanted(demands []demand) (providers []string, jobs int) {
	providers = []string{}
	for _, d := range demands {
		jobs += d.limit
		if d.providers == nil || providers == nil {
			providers = nil
			continue
		}
		providers = append(providers, d.providers...)
	}
	slices.Sort(providers)
	return slices.Compact(providers), jobs
}

// A supplyRow is a row of readSupply.
type supplyRow struct {
	now           time.Time
	arrivals, due bool

	provider *string // nil, as all that follow: no provider is open
	room     *int    // nil: no limit

	account  *store.ID // nil, as all that follow: no account has a turn there
	codes    []string  // the providers at which the account has a turn
	turns    []int64   // likewise
	anyTurn  *int64
	maxSpans *int // the most fresh spans that were read, and the most others

	fresh          *bool // nil, as all that follow: the account has no jobs there
	run            *store.ID
	created        *time.Time
	modelNo        *int16
	first, last    *int32
	attempt, tries *int16
	started        *time.Time // nil if fresh
}

func (r *supplyRow) columns() []any {
	return []any{&r.now, &r.arrivals, &r.due, &r.provider, &r.room, &r.account, &r.codes, &r.turns, &r.anyTurn, &r.maxSpans,
		&r.fresh, &r.run, &r.created, &r.modelNo, &r.first, &r.last, &r.attempt, &r.tries, &r.started}
}

// A supplyBuilder makes a supply of the rows of one statement or two. The second statement may return spans that the first one has
// returned. Rows are added one by one, because a claim reads many.
type supplyBuilder struct {
	statement int // whose rows are added
	supply    *supply
	idle      turnKeys
	accounts  map[store.ID]*account
	counts    map[accountAt]spanCount
}

// A spanCount is how many spans a statement has returned of an account at a provider.
type spanCount struct{ statement, fresh, others int }

func newSupplyBuilder() *supplyBuilder {
	return &supplyBuilder{supply: &supply{capacity: make(map[string]int)}, accounts: make(map[store.ID]*account), counts: make(map[accountAt]spanCount)}
}

func (b *supplyBuilder) add(r *supplyRow) {
	if r.provider == nil {
		return
	}
	b.supply.capacity[*r.provider] = unlimited
	if r.room != nil {
		b.supply.capacity[*r.provider] = *r.room
	}
	if r.account == nil {
		return
	}
	a := b.accounts[*r.account]
	if a == nil {
		a = &account{id: *r.account, anyTurn: *r.anyTurn, turns: make(map[string]int64), spans: make(map[string][]*span), more: make(map[string]bool)}
		for i, code := range r.codes {
			a.turns[code] = r.turns[i]
		}
		b.accounts[a.id] = a
		b.supply.accounts = append(b.supply.accounts, a)
	}
	at := accountAt{a.id, *r.provider}
	n, known := b.counts[at]
	switch {
	case known && n.statement != b.statement:
		return
	case r.fresh == nil:
		b.idle.add(at.account, at.provider)
		return
	case *r.fresh:
		n.fresh++
	default:
		n.others++
	}
	n.statement = b.statement
	b.counts[at] = n
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
	return int(a.first - b.first)
}

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
	now      time.Time
	turn     int64 // the transaction numbers turns from here on
	supply   *supply
	changed  bool                  // the transaction queued jobs or deleted turns
	idle     turnKeys              // of accounts without jobs to hand out
	accounts map[store.ID]*account // of the supply
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

// readQueues begins a transaction that hands out jobs. It queues arrived runs and due retries before it reads the jobs that can be
// handed out.
//
// An account whose last jobs were canceled keeps its turn until it is among the accounts read. There it may have taken the place of
// one that has jobs, so its turn is deleted and the jobs are read again, those of ever more accounts: many may have been canceled.
func (d *Dispatcher) readQueues(ctx context.Context, conn *pgx.Conn, demands []demand) (*queues, error) {
	providers, want := wanted(demands)
	q := &queues{}
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue(lockClaims).QueryRow(func(row pgx.Row) error {
		var number int64
		if err := row.Scan(nil, nil, &number); err != nil {
			return err
		}
		q.turn = number << 20
		return nil
	})
	var backlog bool
	read := func(rows pgx.Rows) error {
		more, err := q.read(rows)
		backlog = backlog || more
		return err
	}
	queueRead := func(b *pgx.Batch) {
		q.supply, q.idle, q.accounts = &supply{capacity: make(map[string]int)}, turnKeys{}, make(map[store.ID]*account)
		if slices.ContainsFunc(demands, func(d demand) bool { return d.providers == nil }) {
			b.Queue(readSupplyOfAny, d.outage.Reachable(citusSupplyOfAny), providers, want).Query(read)
		}
		if slices.ContainsFunc(demands, func(d demand) bool { return d.providers != nil }) {
			b.Queue(readSupply, d.outage.Reachable(citusSupply), providers, want).Query(read)
		}
	}
	queueRead(&b)
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	if backlog {
		q.changed = true
		var b pgx.Batch
		if store.IsCitus(conn) {
			if err := d.queueOnCitus(ctx, conn, q.turn); err != nil {
				return nil, err
			}
		} else {
			b.Queue(queueArrivals, q.turn)
			b.Queue(queueDue, q.turn)
		}
		queueRead(&b)
		if err := conn.SendBatch(ctx, &b).Close(); err != nil {
			return nil, err
		}
	}
	for len(q.idle.accounts) > 0 {
		q.changed = true
		want = min(2*want, maxBatchClaims)
		var b pgx.Batch
		b.Queue(endTurns, citusEndTurns, q.idle.accounts, q.idle.providers)
		queueRead(&b)
		if err := conn.SendBatch(ctx, &b).Close(); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// wanted returns the providers that any claim accepts (nil: all) and the number of jobs that the claims request.
func wanted(demands []demand) (providers []string, jobs int) {
	providers = []string{}
	for _, d := range demands {
		jobs += d.limit
		if d.providers == nil || providers == nil {
			providers = nil
			continue
		}
		for _, p := range d.providers {
			if !slices.Contains(providers, p) {
				providers = append(providers, p)
			}
		}
	}
	return providers, jobs
}

// read reads the rows of readSupply and reports whether runs or jobs wait to be queued.
func (q *queues) read(rows pgx.Rows) (backlog bool, err error) {
	known := make(map[accountAt]bool) // their spans have been read, in another order of the accounts
	for _, a := range q.accounts {
		for code := range a.spans {
			known[accountAt{a.id, code}] = true
		}
	}
	var (
		due              bool
		code             *string
		capacity         *int
		id, run          *store.ID
		codes            []string
		turns            []int64
		anyTurn          *int64
		maxSpans         *int
		fresh            *bool
		created, started *time.Time
		modelNo          *int16
		first, last      *int32
		attempt, tries   *int16
		spansOf          = make(map[accountAt][2]int) // fresh and given back
	)
	_, err = pgx.ForEachRow(rows, []any{&q.now, &backlog, &due, &code, &capacity, &id, &codes, &turns, &anyTurn, &maxSpans,
		&fresh, &run, &created, &modelNo, &first, &last, &attempt, &tries, &started}, func() error {
		backlog = backlog || due
		if code == nil {
			return nil
		}
		q.supply.capacity[*code] = unlimited
		if capacity != nil {
			q.supply.capacity[*code] = *capacity
		}
		if id == nil {
			return nil
		}
		a := q.accounts[*id]
		if a == nil {
			a = &account{id: *id, anyTurn: *anyTurn, turns: make(map[string]int64), spans: make(map[string][]*span), more: make(map[string]bool)}
			for i, c := range codes {
				a.turns[c] = turns[i]
			}
			q.accounts[*id] = a
			q.supply.accounts = append(q.supply.accounts, a)
		}
		at := accountAt{*id, *code}
		if known[at] {
			return nil
		}
		if fresh == nil {
			q.idle.add(*id, *code)
			return nil
		}
		n := spansOf[at]
		if *fresh {
			n[0]++
		} else {
			n[1]++
		}
		spansOf[at] = n
		a.more[*code] = n[0] == *maxSpans || n[1] == *maxSpans
		s := &span{account: *id, run: *run, provider: *code, created: *created, modelNo: *modelNo, firstRead: *first, first: *first, last: *last,
			fresh: *fresh, attempt: *attempt, tries: *tries}
		if started != nil {
			s.startedAt = *started
		}
		a.spans[*code] = append(a.spans[*code], s)
		return nil
	})
	for _, a := range q.accounts {
		for _, spans := range a.spans {
			slices.SortStableFunc(spans, compareSpans)
		}
	}
	return backlog, err
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

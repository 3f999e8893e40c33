package jobs

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A ClaimRequest is a worker's wish for jobs.
type ClaimRequest struct {
	Worker    store.ID
	Providers []string // nil: all
	Limit     int
	Lease     time.Duration
	Wait      time.Duration // for the first job
}

// A Job is what a worker has claimed.
type Job struct {
	Key        Key
	Attempt    int
	LeaseUntil time.Time
	Provider   string
	Repetition int
	Question   *Question
	Order      *Order
}

// An Order is what all jobs of one run and model have in common.
type Order struct {
	MeasurementType, MethodologyVersion string
	Locale, Country, Language           string
	ModelID, ProviderModel              string
}

// A Question is what a job asks.
type Question struct{ ID, Text, Language, Country string }

// claimAll serves claims in one transaction.
func (d *Dispatcher) claimAll(ctx context.Context, requests []*ClaimRequest) ([][]Job, error) {
	out := make([][]Job, len(requests))
	demands := make([]demand, len(requests))
	for i, r := range requests {
		demands[i] = demand{limit: r.Limit, providers: r.Providers, all: r.Providers == nil}
	}
	err := inTransaction(ctx, d.cfg.Pool, func(conn *pgx.Conn) error {
		s, err := readQueues(ctx, conn, demands)
		if err != nil {
			return err
		}
		d.noteClock(s.now)
		grants := allot(s.supply, demands, s.turn)
		if !slices.ContainsFunc(grants, func(g []grant) bool { return len(g) > 0 }) && !s.changed && len(s.idle) == 0 {
			return rollback(ctx, conn)
		}
		w := newClaimWrites(s, requests, grants)
		if err := w.run(ctx, conn); err != nil {
			return err
		}
		for i := range requests {
			out[i] = w.jobs(i)
		}
		d.counts.claimed(w)
		return nil
	})
	return out, err
}

// queues is what a transaction found under the lock of claims.
type queues struct {
	now      time.Time
	turn     int64 // turns of the transaction are numbered from here on
	supply   *supply
	changed  bool // something was queued
	idle     []accountAt
	accounts map[store.ID]*account // of the supply
}

// An accountAt is an account at a provider.
type accountAt struct {
	account  store.ID
	provider string
}

// readQueues begins a transaction that hands out jobs. It queues what has arrived before it reads what can be handed out.
func readQueues(ctx context.Context, conn *pgx.Conn, demands []demand) (*queues, error) {
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
		q.supply, q.idle, q.accounts = &supply{rooms: make(map[string]int)}, nil, make(map[store.ID]*account)
		if slices.ContainsFunc(demands, func(d demand) bool { return d.all }) {
			b.Queue(readSupplyOfAny, providers, want).Query(read)
		}
		if slices.ContainsFunc(demands, func(d demand) bool { return !d.all }) {
			b.Queue(readSupply, providers, want).Query(read)
		}
	}
	queueRead(&b)
	if err := conn.SendBatch(ctx, &b).Close(); err != nil || !backlog {
		return q, err
	}
	q.changed = true
	var again pgx.Batch
	again.Queue(queueArrivals, q.turn)
	again.Queue(queueDue, q.turn)
	queueRead(&again)
	return q, conn.SendBatch(ctx, &again).Close()
}

// wanted returns the providers of which any claim wants jobs (nil: all) and how many jobs the claims want.
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

// read reads the rows of readSupply and reports whether something waits to be queued.
func (q *queues) read(rows pgx.Rows) (backlog bool, err error) {
	known := make(map[accountAt]bool) // their spans have been read, in another order of the accounts
	for _, a := range q.accounts {
		for code := range a.complete {
			known[accountAt{a.id, code}] = true
		}
	}
	var (
		due              bool
		code             *string
		room             *int
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
	_, err = pgx.ForEachRow(rows, []any{&q.now, &backlog, &due, &code, &room, &id, &codes, &turns, &anyTurn, &maxSpans,
		&fresh, &run, &created, &modelNo, &first, &last, &attempt, &tries, &started}, func() error {
		backlog = backlog || due
		if code == nil {
			return nil
		}
		q.supply.rooms[*code] = unlimited
		if room != nil {
			q.supply.rooms[*code] = *room
		}
		if id == nil {
			return nil
		}
		a := q.accounts[*id]
		if a == nil {
			a = &account{id: *id, anyTurn: *anyTurn, turns: make(map[string]int64), spans: make(map[string][]*span), complete: make(map[string]bool)}
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
			q.idle = append(q.idle, at)
			a.complete[*code] = true
			return nil
		}
		n := spansOf[at]
		kind := 0
		if !*fresh {
			kind = 1
		}
		n[kind]++
		spansOf[at] = n
		a.complete[*code] = n[0] < *maxSpans && n[1] < *maxSpans
		s := &span{account: *id, run: *run, provider: *code, created: *created, modelNo: *modelNo, row: *first, first: *first, last: *last,
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

// compareSpans orders by run, the oldest first, and within a run what was given back before what is fresh.
func compareSpans(a, b *span) int {
	if c := a.created.Compare(b.created); c != 0 {
		return c
	}
	if c := a.run.Compare(b.run); c != 0 {
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

// A claimWrites is what a transaction that hands out jobs writes.
type claimWrites struct {
	now      time.Time
	requests []*ClaimRequest
	grants   [][]grant
	supply   *supply
	idle     []accountAt

	described map[*span]map[int32]*description // of each grant, by span and first job
}

// A description is what describeGrants returns of a grant.
type description struct {
	order                  Order
	repetitions, questions int
	first                  int // of the questions, from 1
	ids, texts             []string
	languages, countries   []string
}

func newClaimWrites(q *queues, requests []*ClaimRequest, grants [][]grant) *claimWrites {
	return &claimWrites{now: q.now, requests: requests, grants: grants, supply: q.supply, idle: q.idle}
}

// run writes the grants, reads what workers need to know of them, and commits.
func (w *claimWrites) run(ctx context.Context, conn *pgx.Conn) error {
	var b pgx.Batch
	w.queueRuns(&b)
	w.queueLeases(&b)
	w.queueTurns(&b)
	w.queueDescriptions(&b)
	b.Queue("COMMIT")
	return conn.SendBatch(ctx, &b).Close()
}

// all yields the grants of all claims.
func (w *claimWrites) all(yield func(*ClaimRequest, *grant) bool) {
	for i := range w.grants {
		for j := range w.grants[i] {
			if !yield(w.requests[i], &w.grants[i][j]) {
				return
			}
		}
	}
}

func (g *grant) jobs() int32 { return g.last - g.first + 1 }

type runKey struct{ account, run store.ID }

func compareRuns(a, b runKey) int {
	if c := a.account.Compare(b.account); c != 0 {
		return c
	}
	return a.run.Compare(b.run)
}

// queueRuns locks the runs and counts their jobs as running, and claims of providers in this minute.
func (w *claimWrites) queueRuns(b *pgx.Batch) {
	jobs := make(map[runKey]int32)
	claimed := make(map[string]int32)
	for _, g := range w.all {
		jobs[runKey{g.span.account, g.span.run}] += g.jobs()
		claimed[g.span.provider] += g.jobs()
	}
	if len(jobs) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(jobs), compareRuns)
	accounts, runs := splitKeys(keys)
	counts := make([]int32, len(keys))
	for i, k := range keys {
		counts[i] = jobs[k]
	}
	b.Queue(lockRuns, accounts, runs).Query(func(rows pgx.Rows) error { rows.Close(); return rows.Err() })
	b.Queue(startJobs, accounts, runs, counts, w.now)
	codes := slices.Sorted(maps.Keys(claimed))
	counts = make([]int32, len(codes))
	for i, c := range codes {
		counts[i] = claimed[c]
	}
	b.Queue(countClaims, codes, counts, w.now)
}

func splitKeys(keys []runKey) (accounts, runs []store.ID) {
	for _, k := range keys {
		accounts, runs = append(accounts, k.account), append(runs, k.run)
	}
	return accounts, runs
}

// queueLeases writes the leases, and what is left of the spans that they were taken from.
func (w *claimWrites) queueLeases(b *pgx.Batch) {
	var taken leaseKeys
	var put leaseRows
	var next, ended queueRows
	seen := make(map[*span]bool)
	for _, g := range w.all {
		s := g.span
		if seen[s] {
			continue
		}
		seen[s] = true
		switch {
		case !s.fresh:
			taken.add(s.account, s.run, s.row)
			if s.first <= s.last {
				put.add(&lease{account: s.account, run: s.run, first: s.first, last: s.last, provider: s.provider, created: s.created,
					state: stateReady, attempt: s.attempt, tries: s.tries, until: w.now, startedAt: s.startedAt})
			}
		case s.first <= s.last:
			next.add(s)
		default:
			ended.add(s)
		}
	}
	for r, g := range w.all {
		s := g.span
		l := &lease{account: s.account, run: s.run, first: g.first, last: g.last, provider: s.provider, created: s.created,
			state: stateHeld, attempt: s.attempt + 1, tries: s.tries, until: w.now.Add(r.Lease), startedAt: s.startedAt, worker: r.Worker}
		if s.fresh {
			l.startedAt = w.now
		}
		put.add(l)
	}
	if len(taken.ordinals) > 0 {
		b.Queue(deleteLeases, taken.accounts, taken.runs, taken.ordinals)
	}
	if len(put.accounts) > 0 {
		b.Queue(putLeases, put.args()...)
	}
	if len(next.accounts) > 0 {
		b.Queue(advanceQueue, next.accounts, next.runs, next.models, next.next)
	}
	if len(ended.accounts) > 0 {
		b.Queue(endQueue, ended.accounts, ended.runs, ended.models)
	}
}

type queueRows struct {
	accounts, runs []store.ID
	models         []int16
	next           []int32
}

func (q *queueRows) add(s *span) {
	q.accounts, q.runs = append(q.accounts, s.account), append(q.runs, s.run)
	q.models, q.next = append(q.models, s.modelNo), append(q.next, s.first)
}

// queueTurns writes the new turns, and removes those of accounts that have no more jobs at a provider.
func (w *claimWrites) queueTurns(b *pgx.Batch) {
	var setAccounts, endAccounts []store.ID
	var setCodes, endCodes []string
	var setTurn, setAny []int64
	for _, at := range w.idle {
		endAccounts, endCodes = append(endAccounts, at.account), append(endCodes, at.provider)
	}
	for _, a := range w.supply.accounts {
		if !a.served {
			continue
		}
		for code, turn := range a.turns {
			complete, read := a.complete[code]
			switch {
			case slices.Contains(w.idle, accountAt{a.id, code}):
			case read && complete && len(a.spans[code]) == 0:
				endAccounts, endCodes = append(endAccounts, a.id), append(endCodes, code)
			default:
				setAccounts, setCodes = append(setAccounts, a.id), append(setCodes, code)
				setTurn, setAny = append(setTurn, turn), append(setAny, a.anyTurn)
			}
		}
	}
	if len(setAccounts) > 0 {
		b.Queue(setTurns, setAccounts, setCodes, setTurn, setAny)
	}
	if len(endAccounts) > 0 {
		b.Queue(endTurns, endAccounts, endCodes)
	}
}

func (w *claimWrites) queueDescriptions(b *pgx.Batch) {
	var accounts, runs []store.ID
	var first, last []int32
	var grants []*grant
	for _, g := range w.all {
		grants = append(grants, g)
		accounts, runs = append(accounts, g.span.account), append(runs, g.span.run)
		first, last = append(first, g.first), append(last, g.last)
	}
	if len(grants) == 0 {
		return
	}
	w.described = make(map[*span]map[int32]*description, len(grants))
	b.Queue(describeGrants, accounts, runs, first, last).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var no int
			var d description
			o := &d.order
			if err := rows.Scan(&no, &o.MeasurementType, &o.MethodologyVersion, &o.Locale, &o.Country, &o.Language, &d.repetitions,
				&d.questions, &o.ModelID, &o.ProviderModel, &d.first, &d.ids, &d.texts, &d.languages, &d.countries); err != nil {
				return err
			}
			g := grants[no-1]
			if w.described[g.span] == nil {
				w.described[g.span] = make(map[int32]*description)
			}
			w.described[g.span][g.first] = &d
		}
		return rows.Err()
	})
}

// jobs returns the jobs of one claim. A grant without a description belongs to a run that was canceled at the same time.
func (w *claimWrites) jobs(claim int) []Job {
	var out []Job
	for i := range w.grants[claim] {
		g := &w.grants[claim][i]
		d := w.described[g.span][g.first]
		if d == nil {
			continue
		}
		questions := make([]Question, len(d.ids))
		for i := range questions {
			questions[i] = Question{d.ids[i], d.texts[i], d.languages[i], d.countries[i]}
		}
		until := w.now.Add(w.requests[claim].Lease)
		for ordinal := g.first; ordinal <= g.last; ordinal++ {
			at := int(ordinal) - 1
			out = append(out, Job{
				Key: Key{g.span.account, g.span.run, ordinal}, Attempt: int(g.span.attempt) + 1, LeaseUntil: until, Provider: g.span.provider,
				Repetition: at%d.repetitions + 1, Question: &questions[at/d.repetitions%d.questions+1-d.first], Order: &d.order,
			})
		}
	}
	return out
}

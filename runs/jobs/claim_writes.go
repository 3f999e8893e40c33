package jobs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A claimWrites contains the grants of a transaction that hands out jobs, and writes them.
type claimWrites struct {
	now      time.Time
	requests []*ClaimRequest
	grants   [][]grant // by request
	supply   *supply

	expected int          // spans that the grants take jobs from
	taken    map[Key]bool // of these, the spans whose rows had not changed, by the first job that was read
}

// write writes the grants, reads their descriptions, and commits. It then drops the grants of runs that were canceled
// after their jobs were read. A cancellation deletes the fresh spans of its run, so a claim of fresh jobs need not lock
// the row of a run that has started, and settlements of the run need not wait for it. Only returned jobs are counted in
// that row; batchReturned locks it.
//
// On Citus the rows may have changed since they were read under the lock of claims: after a server's failure, a
// transaction may be committed on the coordinator and not yet on another server, where its changes are invisible until
// then. Its rows are locked, so the writes wait for it, then find fewer rows than expected, and fail with errChanged.
// The same happens if a run was canceled.
func (w *claimWrites) write(ctx context.Context, conn *pgx.Conn) error {
	w.taken = make(map[Key]bool)
	var b pgx.Batch
	// No other claim changes these rows: the lock of claims is held.
	w.batchCounts(&b)
	w.batchTurns(&b, conn)
	w.batchStarts(&b)
	w.batchDescriptions(&b)
	w.batchReturned(&b)
	w.batchSpans(&b)
	w.batchLeases(&b, conn)
	if store.IsCitus(conn) {
		w.batchHolds(&b)
		if err := conn.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		// Nothing is committed yet, so inTransaction can repeat the transaction.
		if len(w.taken) != w.expected {
			return errChanged
		}
		b = pgx.Batch{}
	}
	b.Queue("COMMIT")
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	for i, grants := range w.grants {
		w.grants[i] = slices.DeleteFunc(grants, func(g grant) bool { return g.description == nil || !w.taken[g.span.key()] })
	}
	return nil
}

// take collects the keys that are returned by a statement that takes jobs from spans.
func (w *claimWrites) take(spans int, q *pgx.QueuedQuery) {
	w.expected += spans
	q.Query(func(rows pgx.Rows) error {
		var k Key
		_, err := pgx.ForEachRow(rows, []any{&k.Account, &k.Run, &k.Ordinal}, func() error {
			w.taken[k] = true
			return nil
		})
		return err
	})
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

// batchCounts counts the claims of each provider in this minute.
func (w *claimWrites) batchCounts(b *pgx.Batch) {
	claimed := make(map[string]int32)
	for _, g := range w.all {
		claimed[g.span.provider] += g.jobs()
	}
	if len(claimed) == 0 {
		return
	}
	codes := slices.Sorted(maps.Keys(claimed))
	counts := make([]int32, len(codes))
	for i, c := range codes {
		counts[i] = claimed[c]
	}
	b.Queue(countClaims, codes, counts, w.now)
}

// batchTurns writes the turns that have changed, and deletes the turns of accounts whose last jobs at a provider are
// handed out.
func (w *claimWrites) batchTurns(b *pgx.Batch, conn *pgx.Conn) {
	var ended turnKeys
	var accounts []store.ID
	var codes []string
	var turns []int64
	for _, a := range w.supply.accounts {
		if !a.served {
			continue
		}
		for code, turn := range a.turns {
			// All spans that were read are used up, and none was left unread. A provider that was not read keeps its
			// turn.
			if spans, read := a.spans[code]; read && len(spans) == 0 && !a.more[code] {
				ended.add(a.id, code)
				continue
			}
			if turn != a.read[code] {
				accounts, codes, turns = append(accounts, a.id), append(codes, code), append(turns, turn)
			}
		}
	}
	if len(accounts) > 0 {
		b.Queue(setTurns, citusSetTurns, accounts, codes, turns)
	}
	if len(ended.accounts) > 0 {
		endTurns.queue(b, conn, ended.accounts, ended.providers)
	}
}

// batchStarts starts the runs that are queued.
func (w *claimWrites) batchStarts(b *pgx.Batch) {
	// Of several models of a new run, each may be the first to be claimed. startRuns skips runs that have started.
	accounts, runs, _ := w.runs(func(s *span) bool { return !s.begun() })
	if len(runs) > 0 {
		b.Queue(startRuns, citusStartRuns, accounts, runs, w.now)
	}
}

// batchReturned takes the returned jobs from the counters of their runs.
func (w *claimWrites) batchReturned(b *pgx.Batch) {
	accounts, runs, jobs := w.runs(func(s *span) bool { return !s.fresh })
	if len(runs) > 0 {
		b.Queue(lockRuns, citusLockRuns, accounts, runs)
		b.Queue(takeReturned, citusTakeReturned, accounts, runs, jobs)
	}
}

// runs returns the runs of the granted spans that match, in key order, and the number of their granted jobs.
func (w *claimWrites) runs(matches func(*span) bool) (accounts, ids []store.ID, jobs []int32) {
	byRun := make(map[runKey]int32)
	for _, g := range w.all {
		if matches(g.span) {
			byRun[runKey{g.span.account, g.span.run}] += g.jobs()
		}
	}
	keys := slices.SortedFunc(maps.Keys(byRun), compareRuns)
	for _, k := range keys {
		jobs = append(jobs, byRun[k])
	}
	accounts, ids = splitKeys(keys)
	return accounts, ids, jobs
}

// batchSpans removes the granted jobs from the fresh spans. advanceQueue locks the rows of all these spans in key
// order, as a cancellation locks the rows of its run; it does not change the rows that endQueue then deletes.
func (w *claimWrites) batchSpans(b *pgx.Batch) {
	var all, ended queueChanges
	for _, s := range slices.SortedFunc(slices.Values(w.spansOfGrants()), compareQueueKeys) {
		switch {
		case !s.fresh:
		case s.first <= s.last:
			all.add(s, s.first)
		default:
			// advanceQueue only locks the row and checks it; endQueue deletes it.
			all.add(s, s.firstRead)
			ended.add(s, s.firstRead)
		}
	}
	if len(all.accounts) > 0 {
		w.take(len(all.accounts), b.Queue(advanceQueue, citusAdvanceQueue, all.accounts, all.runs, all.models, all.next, all.was))
	}
	if len(ended.accounts) > 0 {
		b.Queue(endQueue, citusEndQueue, ended.accounts, ended.runs, ended.models, ended.was)
	}
}

// batchLeases writes the leases of the grants, and what is left of the leases that the grants take jobs from. It
// changes no lease of a canceled run: admitArrivals replaces these by results.
func (w *claimWrites) batchLeases(b *pgx.Batch, conn *pgx.Conn) {
	var gone leaseKeys
	var put leaseRows
	for _, s := range w.spansOfGrants() {
		if s.fresh {
			continue
		}
		// A lease is identified by its first job, so what is left of it becomes another row.
		gone.add(s.account, s.run, s.firstRead)
		if s.first <= s.last {
			put.add(&lease{account: s.account, run: s.run, first: s.first, last: s.last, provider: s.provider, created: s.created,
				state: stateReady, attempt: s.attempt, tries: s.tries, until: w.now, startedAt: s.startedAt})
		}
	}
	for r, g := range w.all {
		s := g.span
		// A grant becomes one lease, whose jobs may later be settled or renewed one by one.
		l := &lease{account: s.account, run: s.run, first: g.first, last: g.last, provider: s.provider, created: s.created,
			state: stateHeld, attempt: s.attempt + 1, tries: s.tries, until: w.now.Add(r.Lease), startedAt: s.startedAt, worker: r.Worker}
		if s.fresh {
			l.startedAt = w.now
		}
		put.add(l)
	}
	if len(gone.ordinals) > 0 {
		w.take(len(gone.ordinals), deleteRunningLeases.queue(b, conn, gone.accounts, gone.runs, gone.ordinals))
	}
	if len(put.accounts) > 0 {
		b.Queue(putLeases, append([]any{citusPutLeases}, put.args()...)...)
	}
}

// spansOfGrants returns the spans that the grants take jobs from, each once.
func (w *claimWrites) spansOfGrants() (spans []*span) {
	seen := make(map[*span]bool)
	for _, g := range w.all {
		if !seen[g.span] {
			seen[g.span] = true
			spans = append(spans, g.span)
		}
	}
	return spans
}

// batchHolds counts the jobs of the leases on the coordinator.
func (w *claimWrites) batchHolds(b *pgx.Batch) {
	h := make(holds)
	for _, g := range w.all {
		h.add(g.span.account, g.span.run, g.span.provider, g.jobs())
	}
	if len(h) > 0 {
		b.Queue(addHolds, h.args()...)
	}
}

// compareQueueKeys orders fresh spans by the keys of their rows.
func compareQueueKeys(a, b *span) int {
	return cmp.Or(a.account.Compare(b.account), a.run.Compare(b.run), cmp.Compare(a.modelNo, b.modelNo))
}

// queueChanges are changes of rows of job_queue.
type queueChanges struct {
	accounts, runs []store.ID
	models         []int16
	next, was      []int32 // what next_ordinal becomes, and what it was
}

func (q *queueChanges) add(s *span, next int32) {
	q.accounts, q.runs = append(q.accounts, s.account), append(q.runs, s.run)
	q.models, q.next, q.was = append(q.models, s.modelNo), append(q.next, next), append(q.was, s.firstRead)
}

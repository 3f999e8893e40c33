package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A fetch is the progress of reading an endpoint's due deliveries. They are read in groups, in the order in which they
// are due, each group after the one before: a read from the first pending delivery would pass the index entries of all
// that were delivered since the oldest snapshot of the database. Dispatcher.mu guards it.
//
// A prototype that claimed single deliveries by FOR UPDATE SKIP LOCKED, without a position in memory, delivered to 20
// endpoints about 12,000 events a second instead of 23,000, and 2,000 instead of 14,000 where a snapshot, as of a
// dump, was older than 100,000 deliveries.
//
// Only rounds read, one group at a time. An attempt that ends may restart the fetch while a read is in progress. The
// state is then no longer reading, and what the read found does not move the cursor beyond what was dropped.
type fetch struct {
	state     fetchState
	cursor    cursor     // where the next read begins; zero, which is in the year 1: at the first pending delivery
	next      *time.Time // when the first delivery that was not due is due; nil: there was none
	size      int        // of the next group
	restarted time.Time  // when a read last began at the first pending delivery
}

// A fetchState is what is known of the deliveries that are not loaded.
type fetchState int

const (
	unread  fetchState = iota // nothing; the next read begins at the first pending delivery
	reading                   // a read is in progress, or failed: the next one begins at the same cursor
	partial                   // others may be due after the cursor
	drained                   // the latest read reached the end of the due deliveries
	noneDue                   // the latest read began at the first pending delivery, and none was due
)

// A cursor is the position of a delivery in the order in which deliveries are due.
type cursor struct {
	time time.Time
	id   store.ID
}

// restart makes the next read begin at the first pending delivery.
func (f *fetch) restart() { f.state, f.cursor = unread, cursor{} }

// changed makes the endpoint's account stay with the process until its deliveries are read again.
func (f *fetch) changed() {
	if f.state == noneDue {
		f.state = drained
	}
}

// ended reports whether the latest read reached the end of the due deliveries.
func (f *fetch) ended() bool { return f.state == drained || f.state == noneDue }

// begin begins a read.
func (f *fetch) begin(now time.Time) {
	if now.Sub(f.restarted) > restartFetch {
		f.cursor = cursor{}
	}
	if f.cursor == (cursor{}) {
		f.restarted = now
	}
	f.state = reading
}

// end takes the result of the read that began last, unless the fetch was restarted since.
func (f *fetch) end(r *dueRead) {
	if f.state != reading {
		return
	}
	f.next = r.next
	switch {
	case r.rows == r.limit && r.next == nil:
		f.state, f.cursor = partial, r.last
	case r.due == 0 && r.from == (cursor{}):
		f.state, f.cursor = noneDue, cursor{}
	default:
		f.state, f.cursor = drained, cursor{}
	}
}

// A dueRead is one read of an endpoint's due deliveries.
type dueRead struct {
	endpoint *endpoint
	from     cursor
	limit    int // of rows

	rows, due int        // that were found
	last      cursor     // the last due delivery
	next      *time.Time // when the first delivery that was not due is due
}

// beginReads begins reads of the endpoints that can take deliveries: of all at a poll, and in between of those for
// which others may be due.
func (d *Dispatcher) beginReads(poll bool) (reads []*dueRead) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, total := time.Now(), 0
	for _, a := range d.accounts { // in random order, which is fair
		if a.yielding {
			continue
		}
		reachable := !d.cfg.Outage.Away(a.id)
		for _, e := range a.endpoints {
			d.turns.dropStale(e, now)
			if !reachable || !d.turns.needs(e) || e.fetch.ended() && !poll {
				continue
			}
			if total >= maxFetchAll {
				return reads
			}
			reads = append(reads, e.beginRead(now))
			total += e.fetch.size
		}
	}
	return reads
}

// beginRead begins a read of the endpoint's due deliveries.
func (e *endpoint) beginRead(now time.Time) *dueRead {
	f := &e.fetch
	if f.state == partial && len(e.ready) == 0 { // the endpoint keeps up
		f.size = min(2*f.size, maxFetch)
	}
	f.begin(now)
	clear(e.written)
	r := &dueRead{endpoint: e, from: f.cursor, limit: f.size + 1} // the extra row tells when the next delivery is due
	if r.from == (cursor{}) {
		r.limit += len(e.loaded)
	}
	return r
}

// readDue reads the keys of due deliveries and returns those that are not loaded yet.
func (d *Dispatcher) readDue(ctx context.Context, reads []*dueRead) ([]*delivery, error) {
	if len(reads) == 0 {
		return nil, nil
	}
	n := len(reads)
	accounts, endpoints, afterIDs := make([]store.ID, n), make([]store.ID, n), make([]store.ID, n)
	afterTimes, limits := make([]time.Time, n), make([]int, n)
	for i, r := range reads {
		accounts[i], endpoints[i], limits[i] = r.endpoint.account.id, r.endpoint.id, r.limit
		afterTimes[i], afterIDs[i] = r.from.time, r.from.id
	}
	type row struct {
		I        int
		Event    store.ID
		Resends  int32
		Attempts int32
		NextAt   time.Time
		Due      bool
	}
	found, err := store.Collect(ctx, d.cfg.Pool, pgx.RowToStructByPos[row], readDue, store.OnCitus(citusDue),
		accounts, endpoints, afterTimes, afterIDs, limits)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var due []*delivery
	for _, row := range found {
		r := reads[row.I-1]
		r.rows++
		if !row.Due {
			if r.next == nil {
				r.next = &row.NextAt
			}
			continue
		}
		r.due++
		r.last = cursor{row.NextAt, row.Event}
		if e := r.endpoint; !e.loaded[row.Event] && !e.written[row.Event] {
			due = append(due, &delivery{endpoint: e, event: row.Event, resends: row.Resends, attempts: row.Attempts})
		}
	}
	return due, nil
}

// readEvents reads the events of deliveries, in steps, until the events in memory have limits.bytes. The bodies are
// made here, so that only they stay in memory.
func (d *Dispatcher) readEvents(ctx context.Context, due []*delivery) error {
	d.mu.Lock()
	free := d.turns.limits.bytes - d.turns.bytes
	d.mu.Unlock()
	for step := range slices.Chunk(due, readStep) {
		if free <= 0 {
			break
		}
		accounts, ids := make([]store.ID, len(step)), make([]store.ID, len(step))
		for i, next := range step {
			accounts[i], ids[i] = next.endpoint.account.id, next.event
		}
		rows, err := d.cfg.Pool.Query(ctx, readEvents, store.OfAccounts("v", citusEvents), accounts, ids)
		if err != nil {
			return err
		}
		var i int
		var eventType string
		var createdAt time.Time
		var data []byte
		_, err = pgx.ForEachRow(rows, []any{&i, &eventType, &createdAt, &data}, func() error {
			if free > 0 {
				step[i-1].body = message(eventType, createdAt, data)
				free -= len(step[i-1].body)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endReads adds the deliveries that were read. They are ready from now on: with an earlier time, a round that takes
// longer than maxReadyAge would start none of what it has read. d.mu is held.
func (d *Dispatcher) endReads(reads []*dueRead, due []*delivery) {
	now := time.Now()
	for _, r := range reads {
		r.endpoint.fetch.end(r)
	}
	for _, next := range due {
		if next.body == nil { // the event was deleted, with the delivery, or limits.bytes was reached
			next.endpoint.fetch.restart()
			continue
		}
		if a := next.endpoint.account; next.endpoint.stopped() || d.accounts[a.id] != a { // since the delivery was found
			continue
		}
		next.readySince = now
		d.turns.load(next)
		d.turns.enqueue(next.endpoint.account)
	}
}

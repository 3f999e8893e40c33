package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"aiv/store"
)

// fetchState is where the next read of an endpoint's due deliveries begins.
type fetchState struct {
	afterTime time.Time // zero: at the first pending delivery
	afterID   store.ID
	restarted time.Time // when a read last began at the first
	readAt    time.Time
	size      int

	exhausted bool       // the latest read reached the end of the due deliveries
	complete  bool       // it also began at the first pending delivery, and none was due
	next      *time.Time // when the first delivery that was not due is; nil: there was none
}

// restart makes the next read begin at the first pending delivery.
func (f *fetchState) restart() {
	f.afterTime, f.afterID, f.exhausted, f.complete = time.Time{}, store.ID{}, false, false
}

// A want is a read of one endpoint's due deliveries.
type want struct {
	endpoint  *endpoint
	restart   bool
	most      int
	afterTime time.Time // the position that the read begins at
	afterID   store.ID
}

// wanted returns the endpoints that can take deliveries: all of them at a poll, and in between those that were read a
// while ago or had more.
func (d *Dispatcher) wanted(poll bool) (wants []want) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, all := time.Now(), 0
	for _, a := range d.accounts { // in random order, which is fair
		if a.yielding || a.readAt.IsZero() {
			continue
		}
		away := d.outage.Away(a.id)
		for _, e := range a.endpoints {
			d.turns.dropStale(e, now)
			f := &e.fetch
			switch {
			case away || e.disabled || e.unhealthy && !d.turns.mayStart(e) || d.turns.bytes >= d.cfg.Limits.Bytes:
				continue
			case len(e.ready) > f.size/2:
				continue
			case f.exhausted && !poll && now.Sub(f.readAt) < pollEvery:
				continue
			case all >= maxFetchAll:
				return wants
			}
			if len(e.ready) == 0 && !f.exhausted && !f.readAt.IsZero() && !f.afterTime.IsZero() { // it keeps up
				f.size = min(2*f.size, maxFetch)
			}
			w := want{endpoint: e, most: f.size}
			if f.exhausted || f.afterTime.IsZero() || now.Sub(f.restarted) > restartFetch {
				f.restart()
				f.restarted = now
				w.restart = true
				w.most += len(e.known)
			}
			w.afterTime, w.afterID = f.afterTime, f.afterID
			w.most++ // one that may not be due
			f.readAt = now
			clear(e.written)
			all += f.size
			wants = append(wants, w)
		}
	}
	return wants
}

// readDue reads keys of due deliveries that are not known yet.
func (d *Dispatcher) readDue(ctx context.Context, wants []want) ([]*delivery, error) {
	if len(wants) == 0 {
		return nil, nil
	}
	n := len(wants)
	accounts, endpoints, afterIDs := make([]store.ID, n), make([]store.ID, n), make([]store.ID, n)
	afterTimes, most := make([]pgtype.Timestamptz, n), make([]int, n)
	for i, w := range wants {
		accounts[i], endpoints[i], afterIDs[i], most[i] = w.endpoint.account.id, w.endpoint.id, w.afterID, w.most
		afterTimes[i] = pgtype.Timestamptz{Time: w.afterTime, Valid: true}
		if w.afterTime.IsZero() {
			afterTimes[i] = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		}
	}
	type row struct {
		I        int
		Event    store.ID
		Resends  int32
		Attempts int32
		NextAt   time.Time
		Due      bool
	}
	rows, err := d.cfg.Pool.Query(ctx, readDue, store.OnCitus(citusDue), accounts, endpoints, afterTimes, afterIDs, most)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	var due []*delivery
	seen, dueOf := make([]int, n), make([]int, n)
	next := make([]*time.Time, n)
	for _, r := range found {
		w := wants[r.I-1]
		e := w.endpoint
		seen[r.I-1]++
		if !r.Due {
			if next[r.I-1] == nil {
				next[r.I-1] = &r.NextAt
			}
			continue
		}
		dueOf[r.I-1]++
		e.fetch.afterTime, e.fetch.afterID = r.NextAt, r.Event
		if !e.known[r.Event] && !e.written[r.Event] {
			due = append(due, &delivery{endpoint: e, event: r.Event, resends: r.Resends, attempts: r.Attempts, fetchedAt: now})
		}
	}
	for i, w := range wants {
		f := &w.endpoint.fetch
		f.exhausted = seen[i] < w.most || next[i] != nil
		f.complete = f.exhausted && w.restart && dueOf[i] == 0
		f.next = next[i]
	}
	return due, nil
}

// readEvents reads the events of deliveries. The bodies are made here, so that only they stay in memory.
func (d *Dispatcher) readEvents(ctx context.Context, due []*delivery) error {
	if len(due) == 0 {
		return nil
	}
	accounts, ids := make([]store.ID, len(due)), make([]store.ID, len(due))
	for i, next := range due {
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
		due[i-1].body = message(eventType, createdAt, data)
		return nil
	})
	return err
}

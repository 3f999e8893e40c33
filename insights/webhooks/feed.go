package webhooks

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"aiv/store"
)

const (
	minFetch = 4 // deliveries of an endpoint at a time; doubled as long as the endpoint keeps up
	maxFetch = 256

	maxFetchAll = 1024 // of all endpoints in one round
	maxClaim    = 128  // accounts in one round

	rereadAccount = time.Second     // the age of endpoints at which they are read again
	restartFetch  = 5 * time.Second // a delivery that was committed late may lie before the position
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

// runFeed claims accounts and reads what is due until ctx ends. Attempts that it starts end by work.
func (d *Dispatcher) runFeed(ctx, work context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var claimed time.Time
	for ctx.Err() == nil {
		poll := time.Since(claimed) >= pollEvery
		if poll {
			claimed = time.Now()
		}
		if err := d.round(ctx, work, poll); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("webhooks: reading due deliveries", "error", err)
			sleep(ctx, time.Second)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-d.feed:
		}
	}
}

func sleep(ctx context.Context, t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// round claims accounts, reads endpoints and due deliveries, and gives back accounts with nothing due.
func (d *Dispatcher) round(ctx, work context.Context, poll bool) error {
	if poll {
		if err := d.claim(ctx); err != nil {
			return err
		}
	}
	if err := d.readAccounts(ctx); err != nil {
		return err
	}
	wanted := d.wanted(poll)
	due, err := d.readDue(ctx, wanted)
	if err != nil {
		return err
	}
	if err := d.readEvents(ctx, due); err != nil {
		return err
	}
	d.mu.Lock()
	for _, next := range due {
		// An account may have been lost since, and an event deleted.
		if next.eventType != "" && !next.endpoint.account.lost && !next.endpoint.disabled {
			d.turns.know(next)
			d.turns.add(next.endpoint.account)
		}
	}
	d.start(work)
	d.mu.Unlock()
	return d.release(ctx)
}

// claim claims accounts with due deliveries. If the process owns as many as it may, it gives back those that it has owned
// for long, so that all accounts take turns.
func (d *Dispatcher) claim(ctx context.Context) error {
	d.mu.Lock()
	most := min(maxClaim, d.cfg.Limits.Accounts-len(d.accounts))
	if d.turns.inFlight >= d.cfg.Limits.InFlight {
		most = 0
	}
	d.mu.Unlock()
	candidates, err := column[store.ID](ctx, d.cfg.Pool, dueAccounts, max(most, 1))
	if err != nil || len(candidates) == 0 {
		return err
	}
	if most <= 0 {
		d.makeRoom()
		return nil
	}
	began := time.Now()
	claimed, err := column[store.ID](ctx, d.cfg.Pool, claimAccounts, candidates, d.id, leaseTime.Seconds())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range claimed {
		if a := d.accounts[id]; a != nil { // its lease had ended
			a.leaseEnd = began.Add(leaseTime)
			continue
		}
		d.accounts[id] = &account{id: id, claimedAt: began, leaseEnd: began.Add(leaseTime)}
	}
	return nil
}

// makeRoom marks accounts to be given back though they may have due deliveries.
func (d *Dispatcher) makeRoom() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.accounts) < d.cfg.Limits.Accounts {
		return
	}
	marked := 0
	for _, a := range d.accounts {
		if !a.yielding && time.Since(a.claimedAt) > yieldAfter && marked < maxClaim {
			a.yielding = true
			for _, e := range a.endpoints {
				d.turns.dropReady(e)
			}
			marked++
		}
	}
}

// readAccounts reads the endpoints of accounts that were claimed, and again of those that were read a while ago.
func (d *Dispatcher) readAccounts(ctx context.Context) error {
	d.mu.Lock()
	var ids []store.ID
	for id, a := range d.accounts {
		if time.Since(a.readAt) > rereadAccount {
			ids = append(ids, id)
		}
	}
	d.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	type row struct {
		Account       store.ID
		Version       int64
		Endpoint      *store.ID
		URL           *string
		SecretVersion *int
		PreviousUntil *time.Time
		Failing       bool
	}
	rows, err := d.cfg.Pool.Query(ctx, readAccounts, ids, d.id)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	enabled := make(map[store.ID]bool)
	owned := make(map[store.ID]bool)
	for _, r := range found {
		a := d.accounts[r.Account]
		owned[r.Account] = true
		if a == nil {
			continue
		}
		a.version, a.readAt = r.Version, now
		if r.Endpoint == nil {
			continue
		}
		enabled[*r.Endpoint] = true
		e := a.endpoint(*r.Endpoint)
		if e == nil {
			e = &endpoint{account: a, id: *r.Endpoint, known: make(map[store.ID]bool), unhealthy: r.Failing}
			e.fetch.size = minFetch
			a.endpoints = append(a.endpoints, e)
		}
		e.url, e.disabled = *r.URL, false
		e.keys = [][]byte{d.cfg.Master.derive(e.id, *r.SecretVersion)}
		if *r.SecretVersion > 1 && r.PreviousUntil != nil && r.PreviousUntil.After(now) {
			e.keys = append(e.keys, d.cfg.Master.derive(e.id, *r.SecretVersion-1))
		}
	}
	for _, id := range ids {
		a := d.accounts[id]
		if a == nil {
			continue
		}
		if !owned[id] {
			d.drop(a)
			continue
		}
		for _, e := range a.endpoints {
			if !enabled[e.id] {
				e.disabled = true
				d.turns.dropReady(e)
			}
		}
		a.endpoints = slices.DeleteFunc(a.endpoints, func(e *endpoint) bool { return e.disabled && len(e.known) == 0 })
	}
	return nil
}

func (a *account) endpoint(id store.ID) *endpoint {
	for _, e := range a.endpoints {
		if e.id == id {
			return e
		}
	}
	return nil
}

// A want is a read of one endpoint's due deliveries.
type want struct {
	endpoint *endpoint
	restart  bool
	most     int
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
		for _, e := range a.endpoints {
			d.turns.dropStale(e, now)
			f := &e.fetch
			switch {
			case e.disabled || e.unhealthy && !d.turns.mayStart(e) || d.turns.bytes >= d.cfg.Limits.Bytes:
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
			w.most++ // one that may not be due
			f.readAt = now
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
		f := &w.endpoint.fetch // only this goroutine changes the position
		accounts[i], endpoints[i], afterIDs[i], most[i] = w.endpoint.account.id, w.endpoint.id, f.afterID, w.most
		afterTimes[i] = pgtype.Timestamptz{Time: f.afterTime, Valid: true}
		if f.afterTime.IsZero() {
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
		if !e.known[r.Event] {
			due = append(due, &delivery{endpoint: e, event: r.Event, resends: r.Resends, attempts: r.Attempts, nextAt: r.NextAt, fetchedAt: now})
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

// readEvents reads the events of deliveries.
func (d *Dispatcher) readEvents(ctx context.Context, due []*delivery) error {
	if len(due) == 0 {
		return nil
	}
	accounts, ids := make([]store.ID, len(due)), make([]store.ID, len(due))
	for i, next := range due {
		accounts[i], ids[i] = next.endpoint.account.id, next.event
	}
	rows, err := d.cfg.Pool.Query(ctx, readEvents, accounts, ids)
	if err != nil {
		return err
	}
	var i int
	var eventType string
	var createdAt time.Time
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&i, &eventType, &createdAt, &data}, func() error {
		due[i-1].eventType, due[i-1].createdAt, due[i-1].data = eventType, createdAt, slices.Clone(data)
		return nil
	})
	return err
}

// release gives back accounts that have nothing due, and those removed for others.
func (d *Dispatcher) release(ctx context.Context) error {
	idle, yielding := d.idle()
	if len(idle) > 0 {
		ids, versions, wakes := make([]store.ID, len(idle)), make([]int64, len(idle)), make([]pgtype.Timestamptz, len(idle))
		for i, a := range idle {
			ids[i], versions[i], wakes[i] = a.id, a.version, a.wakeAt()
		}
		released, err := column[store.ID](ctx, d.cfg.Pool, releaseAccounts, ids, versions, wakes, d.id)
		if err != nil {
			return err
		}
		d.mu.Lock()
		for _, a := range idle {
			a.readAt = time.Now().Add(-2 * rereadAccount) // where it stays, its version has changed
		}
		for _, id := range released {
			if a := d.accounts[id]; a != nil {
				d.drop(a)
			}
		}
		d.mu.Unlock()
	}
	if len(yielding) > 0 {
		if _, err := d.cfg.Pool.Exec(ctx, yieldAccounts, yielding, d.id); err != nil {
			return err
		}
		d.mu.Lock()
		for _, id := range yielding {
			if a := d.accounts[id]; a != nil {
				d.drop(a)
			}
		}
		d.mu.Unlock()
	}
	return nil
}

// idle returns the accounts in which nothing was due when all pending deliveries were read, and those removed for others and
// whose outcomes are written. Both are in the order of their ids, in which other statements lock them too.
func (d *Dispatcher) idle() (idle []*account, yielding []store.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.accounts {
		switch {
		case a.known > 0 || a.readAt.IsZero():
		case a.yielding:
			yielding = append(yielding, a.id)
		case a.allRead():
			idle = append(idle, a)
		}
	}
	slices.SortFunc(idle, func(a, b *account) int { return bytes.Compare(a.id[:], b.id[:]) })
	return idle, yielding
}

// allRead reports whether the latest read of each endpoint found all its pending deliveries, none due.
func (a *account) allRead() bool {
	for _, e := range a.endpoints {
		if !e.disabled && !e.fetch.complete {
			return false
		}
	}
	return true
}

// wakeAt returns when the first delivery of the account is due.
func (a *account) wakeAt() pgtype.Timestamptz {
	first := pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	for _, e := range a.endpoints {
		if next := e.fetch.next; !e.disabled && next != nil && (first.InfinityModifier == pgtype.Infinity || next.Before(first.Time)) {
			first = pgtype.Timestamptz{Time: *next, Valid: true}
		}
	}
	return first
}

// column reads one column.
func column[T any](ctx context.Context, db querier, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/webhooks"
	"aiv/store"
)

// An account is one that this process owns: until its lease ends, no other process delivers its events. The limits of
// requests to its endpoints are therefore kept in memory.
type account struct {
	id        store.ID
	version   int64 // of its row in webhook_queues when the endpoints were read
	claimedAt time.Time
	leaseEnd  time.Time
	readAt    time.Time // of the endpoints; zero: they are to be read
	endpoints []*endpoint
	turn      int // index of the endpoint that is next
	inFlight  int
	loaded    int  // deliveries of all endpoints
	yielding  bool // it is released as soon as no delivery is loaded, though others may be due
	queued    bool // in turns.queue
}

// An endpoint is an enabled endpoint of an account that the process owns, or one that has just been disabled or
// deleted.
type endpoint struct {
	account   *account
	id        store.ID
	url       string
	keys      [][]byte // that sign the requests
	disabled  bool     // when the account was read
	gone      bool     // it has responded with 410; that this disables it may not be written yet
	unhealthy bool     // its latest attempt failed
	inFlight  int

	loaded map[store.ID]bool // by event: the deliveries that are ready, in flight, or have an outcome that is not written yet
	ready  []*delivery
	fetch  fetch

	// written has the events of the deliveries whose outcomes were written since the latest read of due deliveries
	// began. That read may return these deliveries as they were before.
	written map[store.ID]bool
}

// stopped reports whether no attempt to the endpoint may start.
func (e *endpoint) stopped() bool { return e.disabled || e.gone }

// A delivery is a due delivery in memory.
type delivery struct {
	endpoint   *endpoint
	event      store.ID
	resends    int32
	attempts   int32
	readySince time.Time

	body []byte // nil: the event was not read
}

// An accountRow is a row of readAccounts: an account and one of its enabled endpoints, or none.
type accountRow struct {
	Account       store.ID
	Version       int64
	Endpoint      *store.ID
	URL           *string
	SecretVersion *int
	Rotating      bool // the previous secret signs too
	Failing       bool
}

// readAccounts reads the endpoints of newly claimed accounts, and those that were read more than rereadAccount ago.
func (d *Dispatcher) readAccounts(ctx context.Context) error {
	return d.readEndpoints(ctx, d.stale(), func(a *account, rows []accountRow) {
		if a.version != rows[0].Version { // deliveries may be due that were not when they were read
			for _, e := range a.endpoints {
				e.fetch.changed()
			}
		}
		a.version, a.readAt = rows[0].Version, time.Now()
		for _, e := range a.endpoints {
			e.gone = e.gone && len(e.loaded) > 0 // the outcome with the 410 may not be written yet
		}
		d.update(a, rows)
	})
}

// readChanges reads the endpoints of due deliveries again, after these were found: a change that was answered before a
// delivery was queued holds for its first attempt. It does not take the version, because other deliveries may have been
// queued since.
func (d *Dispatcher) readChanges(ctx context.Context, due []*delivery) error {
	ids := make([]store.ID, len(due))
	for i, next := range due {
		ids[i] = next.endpoint.account.id
	}
	slices.SortFunc(ids, store.ID.Compare)
	return d.readEndpoints(ctx, slices.Compact(ids), d.update)
}

// readEndpoints reads the endpoints of accounts, for update. It drops the accounts that the process no longer owns.
func (d *Dispatcher) readEndpoints(ctx context.Context, ids []store.ID, update func(*account, []accountRow)) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := store.Collect(ctx, d.cfg.Pool, pgx.RowToStructByPos[accountRow], readAccounts, ids, d.id)
	if err != nil {
		return err
	}
	ofAccount := make(map[store.ID][]accountRow)
	for _, r := range found {
		ofAccount[r.Account] = append(ofAccount[r.Account], r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if a, rows := d.accounts[id], ofAccount[id]; len(rows) == 0 {
			d.drop(a)
		} else {
			update(a, rows)
		}
	}
	return nil
}

// stale returns the accounts whose endpoints are to be read.
func (d *Dispatcher) stale() (ids []store.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.reachable() {
		if time.Since(a.readAt) > rereadAccount {
			ids = append(ids, a.id)
		}
	}
	return ids
}

// update applies what was read of an account. d.mu is held.
func (d *Dispatcher) update(a *account, rows []accountRow) {
	enabled := make(map[store.ID]bool)
	for _, r := range rows {
		if r.Endpoint == nil {
			continue
		}
		enabled[*r.Endpoint] = true
		e := a.endpoint(*r.Endpoint)
		if e == nil {
			e = &endpoint{account: a, id: *r.Endpoint, loaded: make(map[store.ID]bool), written: make(map[store.ID]bool), unhealthy: r.Failing}
			e.fetch.size = minFetch
			a.endpoints = append(a.endpoints, e)
		}
		e.update(r, d.cfg.Master)
	}
	for _, e := range a.endpoints {
		if !enabled[e.id] {
			e.disabled = true
			d.turns.dropReady(e)
		}
	}
	a.endpoints = slices.DeleteFunc(a.endpoints, func(e *endpoint) bool { return e.disabled && len(e.loaded) == 0 })
}

// update applies what was read of an enabled endpoint.
func (e *endpoint) update(r accountRow, m *webhooks.Master) {
	e.url, e.disabled = *r.URL, false
	e.keys = [][]byte{m.Key(e.id, *r.SecretVersion)}
	if r.Rotating {
		e.keys = append(e.keys, m.Key(e.id, *r.SecretVersion-1))
	}
}

func (a *account) endpoint(id store.ID) *endpoint {
	for _, e := range a.endpoints {
		if e.id == id {
			return e
		}
	}
	return nil
}

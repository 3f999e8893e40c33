package webhooks

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
)

// List returns a page of an account's endpoints, newest first, and one more if there is one.
func List(ctx context.Context, db store.Querier, account store.ID, page store.Page) ([]Endpoint, error) {
	q := store.KeysetQuery{Select: listEndpoints, Order: []string{"created_at", "id"}, Page: page}
	q.Where("account_id = ?", account)
	q.Where("deleted_at IS NULL")
	return store.ReadPage[Endpoint](ctx, db, &q)
}

// Get returns an endpoint.
func (w *Webhooks) Get(ctx context.Context, account, id store.ID) (*Endpoint, error) {
	return store.ReadOne[Endpoint](ctx, w.cfg.Pool, ErrEndpointNotFound, getEndpoint, account, id)
}

// Create registers an endpoint and returns it with its secret. url must be from ParseURL; the caller has checked events
// and description. It returns ErrEndpointExists or ErrTooManyEndpoints; both are exact under concurrency.
func (w *Webhooks) Create(ctx context.Context, account store.ID, url, description string, events []string) (e *Endpoint, secret string, err error) {
	id := w.cfg.NewID()
	err = pgx.BeginFunc(ctx, w.cfg.Pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT ` + store.BoundIdle) // the transactions that record events of several accounts wait for the queue
		b.Queue(lockAccount, account)
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		// The slot bounds the number of endpoints: the lock makes the search exact, and an index keeps slots
		// distinct.
		slot, err := freeSlot(ctx, tx, account, url)
		if err != nil {
			return err
		}
		e, err = store.ReadOne[Endpoint](ctx, tx, nil, insertEndpoint, account, id, slot, url, description, events)
		return err
	})
	if store.IsUniqueViolation(err) { // a concurrent Update, which may not lock the queue, gave another endpoint this URL
		return nil, "", ErrEndpointExists
	}
	if err != nil {
		return nil, "", err
	}
	return e, w.cfg.Master.secret(id, 1), nil
}

// freeSlot returns the lowest slot that is not taken. It returns ErrEndpointExists if another endpoint has the URL.
func freeSlot(ctx context.Context, tx pgx.Tx, account store.ID, url string) (int, error) {
	// Slots count from 1.
	var taken [MaxEndpoints + 1]bool
	rows, err := tx.Query(ctx, readSlots, account)
	if err != nil {
		return 0, err
	}
	var slot int
	var other string
	_, err = pgx.ForEachRow(rows, []any{&slot, &other}, func() error {
		taken[slot] = true
		if other == url {
			return ErrEndpointExists
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for slot := 1; slot <= MaxEndpoints; slot++ {
		if !taken[slot] {
			return slot, nil
		}
	}
	return 0, ErrTooManyEndpoints
}

// A Change has the members of an endpoint that change; nil: unchanged. A changed URL applies to pending deliveries too.
type Change struct {
	URL         *string
	Events      []string
	Description *string
	Enabled     *bool
}

// Update changes an endpoint. The caller has checked the values as for Create. For a new URL, Update calls maySend with
// the types of the events that may be sent there besides the types of the change: the types of the present subscription
// and of pending deliveries. It returns ErrEndpointNotFound, ErrEndpointExists, the error of maySend, or ErrDisabled if
// an operator disabled the endpoint that the change would enable.
func (w *Webhooks) Update(ctx context.Context, account, id store.ID, c Change, maySend func(types []string) error) (changed *Endpoint, err error) {
	err = pgx.BeginFunc(ctx, w.cfg.Pool, func(tx pgx.Tx) error {
		before, err := lock(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if c.URL != nil && *c.URL != before.URL && maySend(events.Types()) != nil { // if all types may be sent, the pending ones need not be known
			pending, err := pendingTypes(ctx, tx, account, id)
			if err != nil {
				return err
			}
			if err := maySend(append(pending, before.Events...)); err != nil {
				return err
			}
		}
		e, err := c.apply(*before)
		if err != nil {
			return err
		}
		// enabled tells whether the change enables the endpoint.
		enabled := e.DisabledReason == nil && before.DisabledReason != nil
		if enabled {
			// Create also locks the queue and then waits for a transaction that is adding its URL: the queue is locked
			// before the URL is written, so that they do not deadlock.
			if _, err := tx.Exec(ctx, wakeQueue, account); err != nil {
				return err
			}
		}
		healthy := enabled || e.URL != before.URL // failures before do not count
		changed, err = store.ReadOne[Endpoint](ctx, tx, nil, updateEndpoint, account, id, e.URL, e.Description, e.Events, e.DisabledReason,
			healthy)
		return err
	})
	if store.IsUniqueViolation(err) { // of the URL, which is all that can collide
		return nil, ErrEndpointExists
	}
	return changed, err
}

// maxTyped bounds the number of pending deliveries that pendingTypes reads.
const maxTyped = 10_000

// pendingTypes returns the types of an endpoint's pending deliveries; if there are maxTyped, it returns all types. It
// locks the account's queue, and so waits for the transactions that are adding deliveries.
func pendingTypes(ctx context.Context, tx pgx.Tx, account, endpoint store.ID) (types []string, err error) {
	if _, err := tx.Exec(ctx, lockAccount, account); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, readPendingTypes, account, endpoint, maxTyped)
	if err != nil {
		return nil, err
	}
	total, n, of := 0, 0, ""
	_, err = pgx.ForEachRow(rows, []any{&of, &n}, func() error {
		types = append(types, of)
		total += n
		return nil
	})
	// Further deliveries, which were not read, may be of any type.
	if total == maxTyped {
		types = events.Types()
	}
	return types, err
}

// apply returns an endpoint with the changes, or ErrDisabled.
func (c Change) apply(e Endpoint) (Endpoint, error) {
	if c.URL != nil {
		e.URL = *c.URL
	}
	if c.Events != nil {
		e.Events = c.Events
	}
	if c.Description != nil {
		e.Description = *c.Description
	}
	// Here enabled is the state before the change.
	enabled := e.DisabledReason == nil
	if c.Enabled == nil || *c.Enabled == enabled {
		return e, nil
	}
	if enabled {
		e.DisabledReason = new(ByCustomer)
		return e, nil
	}
	// Only an operator may enable it again.
	if *e.DisabledReason == ByOperator {
		return e, ErrDisabled
	}
	e.DisabledReason = nil
	return e, nil
}

// Delete deletes an endpoint and its deliveries. Attempts that are under way are not canceled. The row stays, so that
// transactions that are adding deliveries do not fail. Purge removes it.
func (w *Webhooks) Delete(ctx context.Context, account, id store.ID) error {
	tag, err := w.cfg.Pool.Exec(ctx, deleteEndpoint, account, id)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrEndpointNotFound
	}
	return err
}

// Rotate replaces the secret of an endpoint and returns the new one. The replaced secret also signs for RotationPeriod.
func (w *Webhooks) Rotate(ctx context.Context, account, id store.ID) (*Endpoint, string, error) {
	type rotated struct {
		Endpoint
		Version int
	}
	r, err := store.ReadOne[rotated](ctx, w.cfg.Pool, ErrEndpointNotFound, rotateSecret, account, id, RotationPeriod.Seconds())
	if err != nil {
		return nil, "", err
	}
	return &r.Endpoint, w.cfg.Master.secret(id, r.Version), nil
}

// lock locks an endpoint and returns it. The transaction ends soon after its process stops, because outcomes of several
// accounts are written together and wait for the endpoint.
func lock(ctx context.Context, tx pgx.Tx, account, id store.ID) (e *Endpoint, err error) {
	var b pgx.Batch
	b.Queue(`SELECT ` + store.BoundIdle)
	b.Queue(lockEndpoint, account, id).Query(func(rows pgx.Rows) (err error) {
		e, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[Endpoint])
		return err
	})
	if err = tx.SendBatch(ctx, &b).Close(); errors.Is(err, pgx.ErrNoRows) {
		err = ErrEndpointNotFound
	}
	return e, err
}

// Deliveries returns a page of an endpoint's deliveries, newest first, and one more if there is one, or
// ErrEndpointNotFound. status is one of DeliveryStatuses or empty.
func Deliveries(ctx context.Context, db store.Querier, account, endpoint store.ID, status string, page store.Page) ([]Delivery, error) {
	// Without this, the deliveries of an unknown endpoint would be an empty list.
	if _, err := store.ReadOne[Endpoint](ctx, db, ErrEndpointNotFound, getEndpoint, account, endpoint); err != nil {
		return nil, err
	}
	q := store.KeysetQuery{Select: listDeliveries, Order: []string{"d.created_at", "d.event_id"}, Page: page}
	q.Where("d.account_id = ?", account)
	q.Where("d.endpoint_id = ?", endpoint)
	q.Filter("d.status", status)
	return store.ReadPage[Delivery](ctx, db, &q)
}

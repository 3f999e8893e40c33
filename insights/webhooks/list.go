package webhooks

import (
	"context"
	"time"

	"aiv/store"
)

// An EventFilter selects events.
type EventFilter struct {
	Types    []string   // one of these; none: no event
	From, To *time.Time // of CreatedAt; To is exclusive
}

// Events returns a page of an account's events, newest first, and one more if there is one.
func Events(ctx context.Context, db store.Querier, account store.ID, f EventFilter, page store.Page) ([]Event, error) {
	if len(f.Types) == 0 {
		return nil, nil
	}
	q := store.KeysetQuery{Select: listEvents, Order: []string{"created_at", "id"}, From: f.From, To: f.To, Page: page}
	q.Where("account_id = ?", account)
	if len(f.Types) < len(Types()) {
		q.Filter("type", f.Types...)
	}
	return store.ReadPage[Event](ctx, db, &q)
}

// Event returns an event, or ErrEventNotFound.
func (w *Webhooks) Event(ctx context.Context, account, id store.ID) (*Event, error) {
	return one[Event](ctx, w.cfg.Pool, ErrEventNotFound, getEvent, account, id)
}

// Deliveries returns a page of an endpoint's deliveries, newest first, and one more if there is one, or
// ErrEndpointNotFound. status is one of DeliveryStatuses or empty.
func Deliveries(ctx context.Context, db store.Querier, account, endpoint store.ID, status string, page store.Page) ([]Delivery, error) {
	if _, err := one[Endpoint](ctx, db, ErrEndpointNotFound, getEndpoint, account, endpoint); err != nil {
		return nil, err
	}
	q := store.KeysetQuery{Select: listDeliveries, Order: []string{"d.created_at", "d.event_id"}, Page: page}
	q.Where("d.account_id = ?", account)
	q.Where("d.endpoint_id = ?", endpoint)
	q.Filter("d.status", status)
	return store.ReadPage[Delivery](ctx, db, &q)
}

package webhooks

import (
	"context"

	"aiv/store"
)

// Deliveries returns a page of an endpoint's deliveries, newest first, and one more if there is one, or
// ErrEndpointNotFound. status is one of DeliveryStatuses or empty.
func Deliveries(ctx context.Context, db store.Querier, account, endpoint store.ID, status string, page store.Page) ([]Delivery, error) {
	if _, err := store.ReadOne[Endpoint](ctx, db, ErrEndpointNotFound, getEndpoint, account, endpoint); err != nil {
		return nil, err
	}
	q := store.KeysetQuery{Select: listDeliveries, Order: []string{"d.created_at", "d.event_id"}, Page: page}
	q.Where("d.account_id = ?", account)
	q.Where("d.endpoint_id = ?", endpoint)
	q.Filter("d.status", status)
	return store.ReadPage[Delivery](ctx, db, &q)
}

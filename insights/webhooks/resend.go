package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
)

// Test records a webhook.test event and queues its delivery to one endpoint, subscribed or not. It returns
// ErrEndpointNotFound, ErrDisabled or a *TooManyDeliveriesError.
func (w *Webhooks) Test(ctx context.Context, account, endpoint store.ID) (event *events.Event, err error) {
	id := w.cfg.NewID()
	err = pgx.BeginFunc(ctx, w.cfg.Pool, func(tx pgx.Tx) error {
		e, err := lock(ctx, tx, account, endpoint)
		if err != nil {
			return err
		}
		if err := mayRequest(ctx, tx, account, e, id); err != nil {
			return err
		}
		data := []byte(`{"webhook_id":"` + endpoint.Text("wh") + `"}`)
		event, err = events.Add(ctx, tx, events.Cause{AccountID: account, ID: id, Type: events.WebhookTest, SubjectID: endpoint, Data: data})
		if err != nil {
			return err
		}
		_, err = request(ctx, tx, account, endpoint, id)
		return err
	})
	return event, err
}

// Resend queues the delivery of an event to an endpoint again, subscribed or not. Its attempts start over. It returns
// ErrEndpointNotFound, events.ErrNotFound (also for an event of a type that the caller may not read), ErrDisabled or a
// *TooManyDeliveriesError.
func (w *Webhooks) Resend(ctx context.Context, account, endpoint, event store.ID, mayRead func(eventType string) bool) (d *Delivery, err error) {
	err = pgx.BeginFunc(ctx, w.cfg.Pool, func(tx pgx.Tx) error {
		e, err := lock(ctx, tx, account, endpoint)
		if err != nil {
			return err
		}
		// The type must be known first: a caller without its scope must not learn that the event exists.
		resent, err := events.Get(ctx, tx, account, event)
		if err != nil {
			return err
		}
		if !mayRead(resent.Type) {
			return events.ErrNotFound
		}
		if err := mayRequest(ctx, tx, account, e, event); err != nil {
			return err
		}
		d, err = request(ctx, tx, account, endpoint, event)
		return err
	})
	if store.IsForeignKeyViolation(err) { // the event was deleted after it was read
		return nil, events.ErrNotFound
	}
	return d, err
}

// mayRequest checks the limits of tests and resends. They are exact under concurrency, as the endpoint is locked.
func mayRequest(ctx context.Context, tx pgx.Tx, account store.ID, e *Endpoint, event store.ID) error {
	if e.DisabledReason != nil {
		return ErrDisabled
	}
	var pending int
	var seconds float64
	if err := tx.QueryRow(ctx, countRequested, account, e.ID, event).Scan(&pending, &seconds); err != nil {
		return err
	}
	// seconds is the time until the first of the pending attempts, after which there may be room.
	if pending >= maxRequested {
		wait := time.Duration(seconds * float64(time.Second))
		return &TooManyDeliveriesError{RetryAfter: min(max(wait, 5*time.Second), time.Hour)}
	}
	var counted int
	// The limit of a host name is shared by all accounts, as many URLs may lead to one server.
	err := tx.QueryRow(ctx, countHost, hostOf(e.URL), maxPerHost).Scan(&counted)
	if errors.Is(err, pgx.ErrNoRows) {
		return &TooManyDeliveriesError{RetryAfter: time.Second}
	}
	return err
}

// request queues the delivery of an event, or queues it again.
func request(ctx context.Context, tx pgx.Tx, account, endpoint, event store.ID) (*Delivery, error) {
	d, err := store.ReadOne[Delivery](ctx, tx, nil, requestDelivery, account, event, endpoint)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, wakeQueue, account)
	return d, err
}

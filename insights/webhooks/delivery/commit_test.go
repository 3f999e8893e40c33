package delivery

import (
	"context"
	"errors"
	"testing"

	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

const attemptedURL = "https://a.example/"

// attempt returns an attempt to deliver a new event of a new account.
func (f *fixture) attempt(t *testing.T) *delivery {
	t.Helper()
	id := f.NewAccount(t)
	e := f.endpoint(t, id, attemptedURL)
	return &delivery{endpoint: &endpoint{account: &account{id: id}, id: e.ID}, event: f.record(t, id, 1)[0]}
}

// write begins to write the outcome of an attempt and returns when it waits for a lock. The channel gets the result.
func (f *fixture) write(t *testing.T, a *delivery, r result) chan error {
	t.Helper()
	d, written := f.dispatcher(), make(chan error, 1)
	go func() { written <- d.write(t.Context(), []outcome{newOutcome(a, attemptedURL, r)}) }()
	storetest.UntilWaiting(t, f.Pool, "transactionid")
	return written
}

// TestResendWhileOutcomesAreWritten: a resend and the transaction that writes outcomes both lock the endpoint before the
// delivery, so that they do not deadlock.
func TestResendWhileOutcomesAreWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.attempt(t)
	var written chan error
	h := &hook{sql: "INSERT INTO webhook_deliveries", start: func(ctx context.Context) context.Context { // the endpoint is locked
		written = f.write(t, a, result{err: webhooks.ErrorTimeout})
		return ctx
	}}
	w := webhooks.New(webhooks.Config{Pool: storetest.WithTracer(t, f.Pool, h), Master: f.master, NewID: store.NewID})
	_, err := w.Resend(t.Context(), a.endpoint.account.id, a.endpoint.id, a.event, mayReadAll)
	must(t, err)
	must(t, <-written)
}

// TestResendWhileEventIsDeleted: the event of a resend is purged after it was read.
func TestResendWhileEventIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.attempt(t)
	h := &hook{sql: "INSERT INTO webhook_deliveries", start: func(ctx context.Context) context.Context {
		f.Exec(t, `DELETE FROM events WHERE account_id = $1`, a.endpoint.account.id)
		return ctx
	}}
	w := webhooks.New(webhooks.Config{Pool: storetest.WithTracer(t, f.Pool, h), Master: f.master, NewID: store.NewID})
	if _, err := w.Resend(t.Context(), a.endpoint.account.id, a.endpoint.id, a.event, mayReadAll); !errors.Is(err, webhooks.ErrEventNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestOutcomeOfMovedDelivery: an outcome is written also where another transaction has changed the delivery without a new attempt.
func TestOutcomeOfMovedDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.attempt(t)
	tx, err := f.Pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1`, a.endpoint.account.id)
	must(t, err)
	written := f.write(t, a, result{status: 200})
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`); n != 1 {
		t.Error("the outcome was left out")
	}
}

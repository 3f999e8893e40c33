package webhooks

import (
	"context"
	"testing"

	"aiv/store/storetest"
)

// TestResendWhileOutcomesAreWritten: a resend and the transaction that writes outcomes both lock the endpoint before the
// delivery, so that they do not deadlock.
func TestResendWhileOutcomesAreWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.account(t)
	e := f.endpoint(t, id, "https://a.example/")
	event := f.record(t, id, 1)[0]
	d := f.dispatcher(DefaultLimits())
	attempt := &delivery{endpoint: &endpoint{account: &account{id: id}, id: e.ID}, event: event}

	tx, err := f.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	must(t, f.mayRequest(t.Context(), tx, id, e.ID, event))
	written := make(chan error, 1)
	go func() {
		written <- d.write(t.Context(), []outcome{newOutcome(attempt, e.URL, result{err: ErrorTimeout})})
	}()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	_, err = f.request(t.Context(), tx, id, e.ID, event)
	must(t, err)
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
}

// TestOutcomeOfMovedDelivery: an outcome is written also where another transaction has changed the delivery without a new attempt.
func TestOutcomeOfMovedDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.account(t)
	e := f.endpoint(t, id, "https://a.example/")
	event := f.record(t, id, 1)[0]
	d := f.dispatcher(DefaultLimits())
	attempt := &delivery{endpoint: &endpoint{account: &account{id: id}, id: e.ID}, event: event}

	tx, err := f.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1`, id)
	must(t, err)
	written := make(chan error, 1)
	go func() {
		written <- d.write(t.Context(), []outcome{newOutcome(attempt, e.URL, result{status: 200})})
	}()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
	if n := f.count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`); n != 1 {
		t.Error("the outcome was left out")
	}
}

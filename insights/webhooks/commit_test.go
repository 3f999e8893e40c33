package webhooks

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/store/storetest"
)

const attemptedURL = "https://a.example/"

// attempt returns an attempt to deliver a new event of a new account, and a transaction in which a test changes the delivery.
func (f *fixture) attempt(t *testing.T) (*delivery, pgx.Tx) {
	t.Helper()
	id := f.account(t)
	e := f.endpoint(t, id, attemptedURL)
	a := &delivery{endpoint: &endpoint{account: &account{id: id}, id: e.ID}, event: f.record(t, id, 1)[0]}
	tx, err := f.pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	return a, tx
}

// write begins to write the outcome of an attempt and returns when it waits for a lock. The channel gets the result.
func (f *fixture) write(t *testing.T, a *delivery, r result) chan error {
	t.Helper()
	d, written := f.dispatcher(DefaultLimits()), make(chan error, 1)
	go func() { written <- d.write(t.Context(), []outcome{newOutcome(a, attemptedURL, r)}) }()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	return written
}

// TestResendWhileOutcomesAreWritten: a resend and the transaction that writes outcomes both lock the endpoint before the
// delivery, so that they do not deadlock.
func TestResendWhileOutcomesAreWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, tx := f.attempt(t)
	account, endpoint := a.endpoint.account.id, a.endpoint.id
	must(t, f.mayRequest(t.Context(), tx, account, endpoint, a.event))
	written := f.write(t, a, result{err: ErrorTimeout})
	_, err := f.request(t.Context(), tx, account, endpoint, a.event)
	must(t, err)
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
}

// TestOutcomeOfMovedDelivery: an outcome is written also where another transaction has changed the delivery without a new attempt.
func TestOutcomeOfMovedDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, tx := f.attempt(t)
	_, err := tx.Exec(t.Context(), `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1`, a.endpoint.account.id)
	must(t, err)
	written := f.write(t, a, result{status: 200})
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
	if n := f.count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`); n != 1 {
		t.Error("the outcome was left out")
	}
}

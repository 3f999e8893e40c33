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

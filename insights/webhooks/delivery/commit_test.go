package delivery

import (
	"context"
	"errors"
	"slices"
	"testing"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/webhookstest"
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
	if _, err := w.Resend(t.Context(), a.endpoint.account.id, a.endpoint.id, a.event, mayReadAll); !errors.Is(err, events.ErrNotFound) {
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

// TestHealthOfGroup: of outcomes that are written together, a success counts more than a failure, and a 410 more than both.
func TestHealthOfGroup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := f.dispatcher()
	for _, test := range []struct {
		statuses []int
		failing  bool
		disabled *string
	}{
		{[]int{200, 500}, false, nil},
		{[]int{500, 200}, false, nil},
		{[]int{200, 410}, true, new(webhooks.Gone)},
		{[]int{410, 200}, true, new(webhooks.Gone)},
		{[]int{410, 500}, true, new(webhooks.Gone)},
	} {
		id := f.NewAccount(t)
		e := f.endpoint(t, id, attemptedURL)
		f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now() WHERE account_id = $1`, id)
		events := f.record(t, id, len(test.statuses))
		slices.SortFunc(events, store.ID.Compare) // the order in which they are written
		owned := &endpoint{account: &account{id: id}, id: e.ID}
		var group []outcome
		for i, status := range test.statuses {
			r := result{status: status}
			if status != 200 {
				r.err = webhooks.ErrorStatus
			}
			group = append(group, newOutcome(&delivery{endpoint: owned, event: events[i]}, e.URL, r))
		}
		must(t, d.write(t.Context(), group))
		if n := f.Count(t, `
SELECT count(*) FROM webhook_endpoints
WHERE account_id = $1 AND (failing_since IS NOT NULL) = $2 AND disabled_reason IS NOT DISTINCT FROM $3`, id, test.failing, test.disabled); n != 1 {
			t.Errorf("after %v: the endpoint is not as wanted: failing %t, disabled %v", test.statuses, test.failing, test.disabled)
		}
	}
}

// TestOutcomeOfDisabledEndpoint: a success of an attempt that began before the customer disabled the endpoint does not enable it.
func TestOutcomeOfDisabledEndpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.attempt(t)
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now(), disabled_reason = 'customer'`)
	must(t, f.dispatcher().write(t.Context(), []outcome{newOutcome(a, attemptedURL, result{status: 200})}))
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE disabled_reason = 'customer'`); n != 1 {
		t.Error("the endpoint is enabled")
	}
}

// TestOrderOfLocks: outcomes lock deliveries in the order of their keys, as a purge does.
func TestOrderOfLocks(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t)
	f := newFixture(t)
	first := f.attempt(t)
	second := &delivery{endpoint: first.endpoint, event: f.record(t, first.endpoint.account.id, 1)[0]}
	if first.event.Compare(second.event) > 0 {
		first, second = second, first
	}
	tx, err := f.Pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	const lock = `SELECT FROM webhook_deliveries WHERE event_id = $1 FOR UPDATE NOWAIT`
	_, err = tx.Exec(t.Context(), lock, first.event)
	must(t, err)
	written := make(chan error, 1)
	r := result{status: 200}
	go func() {
		written <- f.dispatcher().write(t.Context(), []outcome{newOutcome(second, attemptedURL, r), newOutcome(first, attemptedURL, r)})
	}()
	storetest.UntilWaiting(t, f.Pool, "transactionid")
	if _, err := tx.Exec(t.Context(), lock, second.event); err != nil {
		t.Errorf("the second delivery was locked before the first: %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-written)
}

// TestSizeOfGroup: many outcomes, as after a time without the database, are written in several transactions.
func TestSizeOfGroup(t *testing.T) {
	t.Parallel()
	d, e := New(Config{InFlight: 1}), &endpoint{account: &account{}}
	for range maxCommit + 1 {
		d.outcomes = append(d.outcomes, outcome{delivery: &delivery{endpoint: e}})
	}
	if n := len(d.writable()); n != maxCommit {
		t.Errorf("%d outcomes are written together, want %d", n, maxCommit)
	}
}

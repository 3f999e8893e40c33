package delivery

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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

// TestResendWhileOutcomesAreWritten: a resend and the transaction that writes outcomes both lock the endpoint before
// the delivery, so that they do not deadlock.
func TestResendWhileOutcomesAreWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.attempt(t)
	var written chan error
	h := &hook{sql: "INSERT INTO webhook_deliveries", start: func(ctx context.Context) context.Context { // the endpoint is locked
		written = f.write(t, a, result{err: webhooks.ErrorTimeout})
		return ctx
	}}
	must(t, f.resend(t, a, h))
	must(t, <-written)
}

// resend queues a delivery again, by statements that call the hook.
func (f *fixture) resend(t *testing.T, a *delivery, h *hook) error {
	t.Helper()
	w := webhooks.New(webhooks.Config{Pool: storetest.WithTracer(t, f.Pool, h), Master: f.master, NewID: store.NewID})
	_, err := w.Resend(t.Context(), a.endpoint.account.id, a.endpoint.id, a.event, mayReadAll)
	return err
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
	if err := f.resend(t, a, h); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestOutcomeOfMovedDelivery: an outcome is written also where another transaction has changed the delivery without a
// new attempt.
func TestOutcomeOfMovedDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.attempt(t)
	tx := f.begin(t, `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1`, a.endpoint.account.id)
	written := f.write(t, a, result{status: 200})
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
	equal(t, 1, f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`),
		"outcomes that were written")
}

// TestHealthOfGroup: what outcomes that are written together say about an endpoint. A success counts more than a
// failure, and a 410 more than both. Three days of failures disable the endpoint. Outcomes of the URL before a
// change, or of an endpoint that is disabled, say nothing.
func TestHealthOfGroup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := f.dispatcher()
	const days = 24 * time.Hour
	for _, test := range []struct {
		before, statuses []int         // of attempts to the URL before a change, and to the present one
		failingFor       time.Duration // before; 0: not failing
		disabled         *string       // before
		wantFailing      bool
		wantDisabled     *string
	}{
		{statuses: []int{200, 500}, failingFor: time.Hour},
		{statuses: []int{500, 200}, failingFor: time.Hour},
		{statuses: []int{200, 410}, failingFor: time.Hour, wantFailing: true, wantDisabled: new(webhooks.Gone)},
		{statuses: []int{410, 200}, failingFor: time.Hour, wantFailing: true, wantDisabled: new(webhooks.Gone)},
		{statuses: []int{410, 500}, failingFor: time.Hour, wantFailing: true, wantDisabled: new(webhooks.Gone)},
		{statuses: []int{500}, wantFailing: true},
		{statuses: []int{500}, failingFor: 3*days - time.Hour, wantFailing: true},
		{statuses: []int{500}, failingFor: 3*days + time.Second, wantFailing: true, wantDisabled: new(webhooks.Failing)},
		{statuses: []int{200}, failingFor: 3*days + time.Second},
		{before: []int{410}, statuses: []int{500}, failingFor: time.Hour, wantFailing: true},
		{before: []int{200}, statuses: []int{500}, failingFor: time.Hour, wantFailing: true},
		{statuses: []int{200}, failingFor: time.Hour, disabled: new(webhooks.ByCustomer), wantFailing: true,
			wantDisabled: new(webhooks.ByCustomer)},
	} {
		id := f.NewAccount(t)
		e := &endpoint{account: &account{id: id}, id: f.endpoint(t, id, attemptedURL).ID}
		events := f.record(t, id, len(test.before)+len(test.statuses))
		slices.SortFunc(events, store.ID.Compare) // the order in which they are written
		f.Exec(t, `
UPDATE webhook_endpoints SET failing_since = now() - NULLIF($2::double precision, 0) * interval '1 second',
  disabled_reason = $3
WHERE account_id = $1`, id, test.failingFor.Seconds(), test.disabled)
		var group []outcome
		for i, status := range slices.Concat(test.before, test.statuses) {
			r, url := result{status: status}, attemptedURL
			if status != 200 {
				r.err = webhooks.ErrorStatus
			}
			if i < len(test.before) {
				url = "https://before.example/"
			}
			group = append(group, newOutcome(&delivery{endpoint: e, event: events[i]}, url, r))
		}
		must(t, d.write(t.Context(), group))
		if n := f.Count(t, `
SELECT count(*) FROM webhook_endpoints
WHERE account_id = $1 AND COALESCE(failing_since <= now() - $2::double precision * interval '1 second', false) = $3
  AND disabled_reason IS NOT DISTINCT FROM $4`,
			id, test.failingFor.Seconds(), test.wantFailing, test.wantDisabled); n != 1 {
			t.Errorf("the endpoint is not as wanted after %+v", test)
		}
	}
}

// TestLateOutcome: the outcome of an attempt that began before its event was resent, or that is written again,
// changes nothing.
func TestLateOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d, a := f.dispatcher(), f.attempt(t)
	write := func(r result) {
		t.Helper()
		must(t, d.write(t.Context(), []outcome{newOutcome(a, attemptedURL, r)}))
	}
	want := func(status string, attempts int) {
		t.Helper()
		equal(t, 1, f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = $1 AND attempts = $2`, status, attempts),
			"deliveries that are ", status, " after ", attempts, " attempts")
	}
	write(result{err: webhooks.ErrorTimeout})
	write(result{err: webhooks.ErrorTimeout})
	want("pending", 1)
	_, err := f.Resend(t.Context(), a.endpoint.account.id, a.endpoint.id, a.event, mayReadAll)
	must(t, err)
	write(result{status: 200})
	a.attempts = 1
	write(result{status: 200})
	want("pending", 0)
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
	const lock = `SELECT FROM webhook_deliveries WHERE event_id = $1 FOR UPDATE NOWAIT`
	tx := f.begin(t, lock, first.event)
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

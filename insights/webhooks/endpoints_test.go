package webhooks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/storetest"
)

// TestOnlyOperatorsEnable: only an operator enables what an operator disabled. Operators see all endpoints, and their
// changes are audited.
func TestOnlyOperatorsEnable(t *testing.T) {
	f := newFixture(t)
	customer := func(enabled bool) error { return f.update(Change{Enabled: &enabled}, "") }
	list := func(of *store.ID) []AdminEndpoint {
		t.Helper()
		all, err := f.admin.List(t.Context(), of)
		must(t, err)
		return all
	}
	must(t, errOf(f.admin.Disable(t.Context(), f.e.ID)))
	must(t, customer(false)) // changes nothing
	wantError(t, "enabled by its customer", ErrDisabled, customer(true))
	want := AdminEndpoint{AccountID: f.account, Endpoint: *f.e}
	got := list(&f.account)
	want.DisabledReason, want.UpdatedAt = new(ByOperator), got[0].UpdatedAt
	equal(t, []AdminEndpoint{want}, got, "disabled")
	must(t, errOf(f.admin.Enable(t.Context(), f.e.ID)))
	got = list(nil)
	want.DisabledReason, want.UpdatedAt = nil, got[0].UpdatedAt
	equal(t, []AdminEndpoint{want}, got, "enabled")
	equal(t, 0, len(list(new(f.NewAccount(t)))), "endpoints of another account")
	f.Rows(t, 2, `audit_log WHERE actor = 'ann' AND action IN ('webhooks.disable', 'webhooks.enable')`)
	wantError(t, "unknown endpoint", ErrEndpointNotFound, errOf(f.admin.Disable(t.Context(), store.NewID())))
}

// TestHealthAfterUpdate: failures before a change of the URL, or before the endpoint was disabled, do not count.
func TestHealthAfterUpdate(t *testing.T) {
	f := newFixture(t)
	update := func(c Change) func() error { return func() error { return f.update(c, "") } }
	for _, test := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"description", update(Change{Description: new("a")}), "failing, updated"},
		{"same URL", update(Change{URL: new(aURL)}), "failing, updated"},
		{"URL", update(Change{URL: new(bURL)}), "updated"},
		{"disabled", update(Change{Enabled: new(false)}), "failing, updated"},
		{"enabled", update(Change{Enabled: new(true)}), "updated, due"},
		{"disabled by an operator", func() error { return errOf(f.admin.Disable(t.Context(), f.e.ID)) }, "updated"},
		{"enabled by an operator", func() error { return errOf(f.admin.Enable(t.Context(), f.e.ID)) }, "updated, due"},
	} {
		f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now(), updated_at = created_at`)
		f.Exec(t, `UPDATE webhook_queues SET wake_at = 'infinity'`)
		must(t, test.change())
		equal(t, test.want, storetest.Value[string](t, f.Pool, `
SELECT concat_ws(', ', CASE WHEN e.failing_since IS NOT NULL THEN 'failing' END,
  CASE WHEN e.updated_at > e.created_at THEN 'updated' END, CASE WHEN q.wake_at <= now() THEN 'due' END)
FROM webhook_endpoints e, webhook_queues q`), test.name)
	}
}

// TestLimitsOfEndpoints: of many concurrent requests exactly as many succeed as fit.
func TestLimitsOfEndpoints(t *testing.T) {
	f := newFixture(t)
	create := func(url string) error {
		_, _, err := f.Create(t.Context(), f.account, url, "", []string{All})
		return err
	}
	for _, test := range []struct {
		url string
		n   int
		fit int
		err error // of the others
	}{
		{"https://same.example/", 8, 1, ErrEndpointExists},
		{"https://example.com/N", 16, 8, ErrTooManyEndpoints},
	} {
		errs := make([]error, test.n)
		storetest.AtOnce(test.n, func(i int) { errs[i] = create(strings.Replace(test.url, "N", fmt.Sprint(i), 1)) })
		got := make(map[error]int)
		for _, err := range errs {
			got[err]++
		}
		if got[nil] != test.fit || got[test.err] != test.n-test.fit {
			t.Errorf("%d requests with %s: got the errors %v, want %d to succeed", test.n, test.url, got, test.fit)
		}
	}
	f.Rows(t, MaxEndpoints, `webhook_endpoints`)
	f.delete(f.e, "0")
	must(t, create(aURL)) // its slot and its URL are free again
}

func tooMany(err error) (e *TooManyDeliveriesError) {
	e, _ = errors.AsType[*TooManyDeliveriesError](err)
	return e
}

// TestRequestLimits: an endpoint has a limit of pending tests and resends.
func TestRequestLimits(t *testing.T) {
	f := newFixture(t)
	event := f.record(f.account, 1)[0]
	f.Exec(t, `UPDATE webhook_queues SET wake_at = 'infinity'`)
	test := func() (*events.Event, error) {
		f.Exec(t, `DELETE FROM webhook_hosts`)
		return f.Test(t.Context(), f.account, f.e.ID)
	}
	first, err := test()
	for range maxRequested - 1 {
		must(t, err)
		_, err = test()
	}
	f.Rows(t, 1, `webhook_queues WHERE wake_at <= now()`)
	for due, want := range map[string]time.Duration{
		"-1 second": 5 * time.Second, "10 minutes": 10 * time.Minute, "2 hours": time.Hour,
	} {
		f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() + $1::interval WHERE requested`, due)
		got := tooMany(errOf(test()))
		if got == nil || got.RetryAfter > want || got.RetryAfter < want-5*time.Minute {
			t.Errorf("one more test while others are due in %s: %+v, want %v", due, got, want)
		}
	}
	if err := errOf(f.resend(event)); tooMany(err) == nil {
		t.Errorf("one more resend: %v", err)
	}
	must(t, errOf(f.resend(first.ID))) // which is counted already
	f.Rows(t, 1, `webhook_deliveries WHERE event_id = $1 AND next_attempt_at <= now()`, first.ID)
	f.Exec(t, `
UPDATE webhook_deliveries
SET status = 'delivered', attempts = 1, last_status = 200, next_attempt_at = NULL, delivered_at = now()
WHERE event_id IN ($1, $2)`, first.ID, event)
	must(t, errOf(f.resend(event)))
	if err := errOf(test()); tooMany(err) == nil {
		t.Errorf("one more test than with the resend: %v", err)
	}
}

// TestRequestLimitOfHost: a host name has a limit of tests and resends in a second, from all accounts and in all
// spellings.
func TestRequestLimitOfHost(t *testing.T) {
	f := newFixture(t)
	other := f.NewAccount(t)
	e := f.endpoint(other, "https://A.example.:8443/")
	// The row of a second in the near future counts as the present second, so that the test does not depend on the
	// clock.
	var errs []error
	storetest.Eventually(t, "all is requested within that second", func() bool {
		f.Exec(t, `DELETE FROM webhook_deliveries`)
		f.Exec(t, `DELETE FROM webhook_hosts`)
		f.Exec(t, `INSERT INTO webhook_hosts VALUES ('a.example', now() + interval '25 seconds', $1)`, maxPerHost-2)
		errs = nil
		for range 2 {
			errs = append(errs, errOf(f.Test(t.Context(), f.account, f.e.ID)), errOf(f.Test(t.Context(), other, e.ID)))
		}
		return f.Count(t, `SELECT count(*) FROM webhook_hosts WHERE second > now()`) == 1
	})
	for i, err := range errs {
		if refused := i > 1; (tooMany(err) != nil) != refused || !refused && err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	f.Exec(t, `UPDATE webhook_hosts SET second = now() + interval '1 hour'`) // the database's clock was ahead
	must(t, errOf(f.Test(t.Context(), f.account, f.e.ID)))
	f.Rows(t, 1, `webhook_hosts WHERE second <= now() AND requested = 1`)
}

// TestMaySend: a new URL requires that the types of the present subscription may be sent there, and beyond a number of
// pending deliveries all types.
func TestMaySend(t *testing.T) {
	f := newFixture(t)
	f.Exec(t, `UPDATE webhook_endpoints SET events = '{alert.opened}'`)
	add := func(n int) {
		f.Exec(t, `
WITH event AS (
  INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT $1, gen_random_uuid(), 'alert.opened', $1, '{}' FROM generate_series(1, $3) RETURNING id)
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT $1, id, $2 FROM event`, f.account, f.e.ID, n)
	}
	change := func(url string) error { return f.update(Change{URL: &url}, events.RecommendationSuggested) }
	c := Change{URL: new(bURL), Events: []string{events.RunFailed}}
	wantError(t, "the present subscription", errRefused, f.update(c, events.AlertOpened))
	add(maxTyped - 1)
	must(t, change(bURL))
	add(1)
	wantError(t, "with the number", errRefused, change(aURL))
	f.Exec(t, `
UPDATE webhook_deliveries SET status = 'failed', attempts = 1, next_attempt_at = NULL
WHERE event_id = (SELECT event_id FROM webhook_deliveries LIMIT 1)`)
	wantError(t, "when one delivery has failed", nil, change(aURL))
}

// TestURLWhileEventIsRecorded: while an event waits to be recorded, a webhook is unsubscribed from its type and gets
// another URL. The event is not delivered there.
func TestURLWhileEventIsRecorded(t *testing.T) {
	f := newFixture(t)
	held := f.NewAccount(t)
	if held.Compare(f.account) > 0 { // the order in which their queues are locked
		f.e = f.endpoint(held, aURL)
		held, f.account = f.account, held
	} else {
		f.endpoint(held, aURL)
	}
	err := f.beside(storetest.Begin(t, f.Pool, lockAccount, held), func() error {
		return f.tryRecord(cause(held, events.AlertOpened), cause(f.account, events.AlertOpened))
	}, func() {
		must(t, f.update(Change{Events: []string{events.WebhookTest}}, ""))
		must(t, f.update(Change{URL: new(bURL)}, events.AlertOpened))
	})
	must(t, err)
	f.Rows(t, 0, `webhook_deliveries WHERE account_id = $1`, f.account)
}

// TestURLWhileEventIsCommitted: a change of the URL waits for the transaction that has queued an event that may not be
// sent there.
func TestURLWhileEventIsCommitted(t *testing.T) {
	f := newFixture(t)
	tx := storetest.Begin(t, f.Pool, "")
	must(t, Record(t.Context(), tx, []events.Cause{cause(f.account, events.AlertOpened)}))
	must(t, f.update(Change{Events: []string{events.WebhookTest}}, ""))
	err := f.beside(tx, func() error { return f.update(Change{URL: new(bURL)}, events.AlertOpened) })
	wantError(t, "change", errRefused, err)
}

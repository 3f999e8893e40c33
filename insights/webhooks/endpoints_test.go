package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/storetest"
)

// TestOnlyOperatorsEnable: only an operator enables what an operator disabled. Operators see all endpoints, and their
// changes are audited.
func TestOnlyOperatorsEnable(t *testing.T) {
	f := newFixture(t)
	byOperator := func(set func(context.Context, store.ID) (*AdminEndpoint, error)) error {
		return errOf(set(t.Context(), f.e.ID))
	}
	byCustomer := func(enabled bool) error { return f.update(Change{Enabled: &enabled}, "") }
	for _, step := range []struct {
		name      string
		got, want error
	}{
		{"disabled by an operator", byOperator(f.admin.Disable), nil},
		{"disabled by its customer", byCustomer(false), nil},
		{"enabled by its customer", byCustomer(true), ErrDisabled},
	} {
		wantError(t, step.name, step.want, step.got)
	}
	list := func(of *store.ID) []AdminEndpoint {
		t.Helper()
		all, err := f.admin.List(t.Context(), of)
		must(t, err)
		return all
	}
	want := AdminEndpoint{AccountID: f.account, Endpoint: *f.e}
	want.DisabledReason = new(ByOperator)
	updated := cmpopts.IgnoreFields(Endpoint{}, "UpdatedAt")
	equal(t, "disabled", []AdminEndpoint{want}, list(&f.account), updated)
	must(t, byOperator(f.admin.Enable))
	want.DisabledReason = nil
	equal(t, "enabled", []AdminEndpoint{want}, list(nil), updated)
	equal(t, "endpoints of another account", 0, len(list(new(f.NewAccount(t)))))
	f.rows(2, `audit_log WHERE actor = 'ann' AND action IN ('webhooks.disable', 'webhooks.enable')`)
	wantError(t, "unknown endpoint", ErrEndpointNotFound, errOf(f.admin.Disable(t.Context(), store.NewID())))
}

// TestRotatedSecretSigns: the secret before a rotation signs for 24 hours more.
func TestRotatedSecretSigns(t *testing.T) {
	f := newFixture(t)
	e, secret, err := f.Rotate(t.Context(), f.account, f.e.ID)
	must(t, err)
	equal(t, "secret", f.master.secret(e.ID, 2), secret)
	equal(t, "the rotation is an update", true, e.UpdatedAt.After(f.e.UpdatedAt))
	f.rows(1, `webhook_endpoints WHERE previous_until = updated_at + interval '24 hours'`)
}

// TestHealthAfterUpdate: failures before a change of the URL, or before the endpoint was disabled, do not count.
func TestHealthAfterUpdate(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		name   string
		change Change
		admin  func(context.Context, store.ID) (*AdminEndpoint, error)
		want   string
	}{
		{name: "description", change: Change{Description: new("a")}, want: "failing, updated"},
		{name: "same URL", change: Change{URL: new(aURL)}, want: "failing, updated"},
		{name: "URL", change: Change{URL: new(bURL)}, want: "updated"},
		{name: "disabled", change: Change{Enabled: new(false)}, want: "failing, updated"},
		{name: "enabled", change: Change{Enabled: new(true)}, want: "updated, due"},
		{name: "disabled by an operator", admin: f.admin.Disable, want: "updated"},
		{name: "enabled by an operator", admin: f.admin.Enable, want: "updated, due"},
	} {
		f.exec(`UPDATE webhook_endpoints SET failing_since = now(), updated_at = created_at`)
		f.exec(`UPDATE webhook_queues SET wake_at = 'infinity'`)
		if test.admin != nil {
			must(t, errOf(test.admin(t.Context(), f.e.ID)))
		} else {
			must(t, f.update(test.change, ""))
		}
		var got string
		must(t, f.Pool.QueryRow(t.Context(), `
SELECT concat_ws(', ', CASE WHEN e.failing_since IS NOT NULL THEN 'failing' END,
  CASE WHEN e.updated_at > e.created_at THEN 'updated' END, CASE WHEN q.wake_at <= now() THEN 'due' END)
FROM webhook_endpoints e, webhook_queues q`).Scan(&got))
		equal(t, test.name, test.want, got)
	}
}

// TestLimitsOfEndpoints: of many concurrent requests exactly as many succeed as fit.
func TestLimitsOfEndpoints(t *testing.T) {
	f := newFixture(t)
	create := func(n int, url string, want map[error]int) {
		t.Helper()
		var all []<-chan error
		for i := range n {
			all = append(all, start(func() error { return f.create(strings.Replace(url, "N", fmt.Sprint(i), 1)) }))
		}
		got := make(map[error]int)
		for _, created := range all {
			got[<-created]++
		}
		equal(t, url, want, got, cmpopts.EquateErrors())
	}
	create(8, "https://same.example/", map[error]int{nil: 1, ErrEndpointExists: 7})
	create(16, "https://example.com/N", map[error]int{nil: 8, ErrTooManyEndpoints: 8})
	f.rows(MaxEndpoints, `webhook_endpoints`)
	f.delete(f.e, "0")
	must(t, f.create(aURL)) // its slot and its URL are free again
}

func tooMany(err error) (e *TooManyDeliveriesError) {
	e, _ = errors.AsType[*TooManyDeliveriesError](err)
	return e
}

// TestRequestLimits: an endpoint has a limit of pending tests and resends.
func TestRequestLimits(t *testing.T) {
	f := newFixture(t)
	event := f.record(f.account, 1)[0]
	f.exec(`UPDATE webhook_queues SET wake_at = 'infinity'`)
	test := func() (*events.Event, error) {
		f.exec(`DELETE FROM webhook_hosts`)
		return f.Test(t.Context(), f.account, f.e.ID)
	}
	first, err := test()
	must(t, err)
	f.rows(1, `webhook_queues WHERE wake_at <= now()`)
	for range maxRequested - 1 {
		must(t, errOf(test()))
	}
	for due, want := range map[string]time.Duration{
		"-1 second": 5 * time.Second, "10 minutes": 10 * time.Minute, "2 hours": time.Hour,
	} {
		f.exec(`UPDATE webhook_deliveries SET next_attempt_at = now() + $1::interval WHERE requested`, due)
		got := tooMany(errOf(test()))
		if got == nil || got.RetryAfter > want || got.RetryAfter < want-5*time.Minute {
			t.Errorf("one more test while others are due in %s: %+v, want %v", due, got, want)
		}
	}
	if err := errOf(f.resend(event)); tooMany(err) == nil {
		t.Errorf("one more resend: %v", err)
	}
	d, err := f.resend(first.ID)
	must(t, err)
	want := Delivery{EventID: first.ID, Type: events.WebhookTest, Status: "pending"}
	times := cmpopts.IgnoreFields(Delivery{}, "CreatedAt", "NextAttemptAt")
	equal(t, "a resend of what is counted already", want, *d, times)
	if time.Until(*d.NextAttemptAt) > time.Minute {
		t.Errorf("a resend is due at %v", d.NextAttemptAt)
	}
	f.exec(`
UPDATE webhook_deliveries
SET status = 'delivered', attempts = 1, last_status = 200, next_attempt_at = NULL, delivered_at = now()
WHERE event_id IN ($1, $2)`, first.ID, event)
	d, err = f.resend(event)
	must(t, err)
	equal(t, "last status of what is resent when a test is delivered", nil, d.LastStatus)
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
		f.exec(`DELETE FROM webhook_deliveries`)
		f.exec(`DELETE FROM webhook_hosts`)
		f.exec(`INSERT INTO webhook_hosts VALUES ('a.example', now() + interval '25 seconds', $1)`, maxPerHost-2)
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
	f.exec(`UPDATE webhook_hosts SET second = now() + interval '1 hour'`) // the database's clock was ahead
	must(t, errOf(f.Test(t.Context(), f.account, f.e.ID)))
	f.rows(1, `webhook_hosts WHERE second <= now() AND requested = 1`)
}

// TestMaySend: a new URL requires that the types of the present subscription may be sent there, and beyond a number of
// pending deliveries all types.
func TestMaySend(t *testing.T) {
	f := newFixture(t)
	f.exec(`UPDATE webhook_endpoints SET events = '{alert.opened}'`)
	add := func(n int) {
		f.exec(`
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
	f.exec(`
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
	f.rows(0, `webhook_deliveries WHERE account_id = $1`, f.account)
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

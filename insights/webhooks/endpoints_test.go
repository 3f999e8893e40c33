package webhooks

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/storetest"
)

func TestEndpointLifecycle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account, other := f.NewAccount(t), f.NewAccount(t)
	e, secret, err := f.Create(t.Context(), account, "https://a.example/", "ünïcode", []string{events.RunCompleted, events.AlertOpened})
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Fatal(err, secret)
	}
	want := &Endpoint{ID: e.ID, URL: "https://a.example/", Description: "ünïcode", Events: []string{events.RunCompleted, events.AlertOpened}}
	times := cmpopts.IgnoreFields(Endpoint{}, "CreatedAt", "UpdatedAt")
	if diff := cmp.Diff(want, e, times); diff != "" || e.CreatedAt.IsZero() || e.CreatedAt != e.UpdatedAt {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if got, err := f.Get(t.Context(), account, e.ID); err != nil || !cmp.Equal(e, got) {
		t.Errorf("%+v, %v", got, err)
	}

	update := func(want error, c Change) *Endpoint {
		t.Helper()
		e, err := f.Update(t.Context(), account, e.ID, c, maySendAll)
		if err != want {
			t.Errorf("%v, want %v", err, want)
		}
		return e
	}
	if got := update(nil, Change{}); !cmp.Equal(want, got, times) {
		t.Errorf("no change: %+v", got)
	}
	want = &Endpoint{ID: e.ID, URL: "https://b.example/", Events: []string{All}, DisabledReason: new(ByCustomer)}
	if got := update(nil, Change{URL: new("https://b.example/"), Events: []string{All}, Description: new(""), Enabled: new(false)}); !cmp.Equal(want, got, times) {
		t.Errorf("all members: %+v", got)
	}
	if got := update(nil, Change{Enabled: new(true)}); got.DisabledReason != nil {
		t.Errorf("enabled: %+v", got)
	}
	f.endpoint(t, account, "https://c.example/")
	update(ErrEndpointExists, Change{URL: new("https://c.example/")})
	update(nil, Change{URL: new("https://b.example/")})

	// Only an operator enables what an operator disabled.
	admin := Admin{f.Pool, "ann"}
	if got, err := admin.Disable(t.Context(), e.ID); err != nil || *got.DisabledReason != ByOperator {
		t.Fatal(got, err)
	}
	if got := update(nil, Change{Enabled: new(false)}); *got.DisabledReason != ByOperator {
		t.Errorf("disabled by an operator: %+v", got)
	}
	update(ErrDisabled, Change{Enabled: new(true)})
	if got, err := admin.Enable(t.Context(), e.ID); err != nil || got.DisabledReason != nil {
		t.Fatal(got, err)
	}
	if all, err := admin.List(t.Context(), nil); err != nil || len(all) != 2 || all[0].AccountID != account || all[0].DisabledReason != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := admin.List(t.Context(), &other); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if n := f.Count(t, `SELECT count(*) FROM audit_log WHERE actor = 'ann' AND action IN ('webhooks.disable', 'webhooks.enable')`); n != 2 {
		t.Errorf("%d rows in the audit log", n)
	}

	before := *update(nil, Change{})
	rotated, second, err := f.Rotate(t.Context(), account, e.ID)
	if err != nil || second == secret || second != f.master.secret(e.ID, 2) || !rotated.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("rotated: %+v, %v", rotated, err)
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE previous_until = updated_at + interval '24 hours'`); n != 1 {
		t.Error("the secret before does not sign for 24 hours")
	}

	// Another account has no such endpoint.
	for name, err := range map[string]error{
		"get":        errOf(f.Get(t.Context(), other, e.ID)),
		"update":     errOf(f.Update(t.Context(), other, e.ID, Change{}, nil)),
		"delete":     f.Delete(t.Context(), other, e.ID),
		"rotate":     errOf2(f.Rotate(t.Context(), other, e.ID)),
		"test":       errOf(f.Test(t.Context(), other, e.ID)),
		"resend":     errOf(f.Resend(t.Context(), other, e.ID, store.NewID(), mayReadAll)),
		"deliveries": errOf(Deliveries(t.Context(), f.Pool, other, e.ID, "", store.Page{Limit: 1})),
		"disable":    errOf(admin.Disable(t.Context(), store.NewID())),
	} {
		if err != ErrEndpointNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := List(t.Context(), f.Pool, account, store.Page{Limit: 10}); err != nil || len(all) != 2 || all[1].ID != e.ID {
		t.Errorf("%+v, %v", all, err)
	}
	if err := f.Delete(t.Context(), account, e.ID); err != nil {
		t.Error(err)
	}
	if err := f.Delete(t.Context(), account, e.ID); err != ErrEndpointNotFound {
		t.Error(err)
	}
	if all, err := List(t.Context(), f.Pool, account, store.Page{Limit: 10}); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	f.endpoint(t, account, "https://b.example/") // the URL is free again
}

func errOf[T any](_ T, err error) error { return err }

func errOf2[T, U any](_ T, _ U, err error) error { return err }

// TestHealthAfterUpdate: failures before a change of the URL, or before the endpoint was disabled, do not count.
func TestHealthAfterUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	admin := Admin{f.Pool, "ann"}
	for _, test := range []struct {
		name    string
		change  Change
		admin   func(context.Context, store.ID) (*AdminEndpoint, error)
		failing bool
	}{
		{name: "description", change: Change{Description: new("a")}, failing: true},
		{name: "same URL", change: Change{URL: new("https://a.example/")}, failing: true},
		{name: "URL", change: Change{URL: new("https://b.example/")}},
		{name: "disabled", change: Change{Enabled: new(false)}, failing: true},
		{name: "enabled", change: Change{Enabled: new(true)}},
		{name: "disabled by an operator", admin: admin.Disable},
		{name: "enabled by an operator", admin: admin.Enable},
	} {
		f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now(), updated_at = created_at`)
		f.Exec(t, `UPDATE webhook_queues SET wake_at = 'infinity'`)
		if test.admin != nil {
			must(t, errOf(test.admin(t.Context(), e.ID)))
		} else {
			must(t, errOf(f.Update(t.Context(), account, e.ID, test.change, maySendAll)))
		}
		var failing, updated, due bool
		must(t, f.Pool.QueryRow(t.Context(), `
SELECT e.failing_since IS NOT NULL, e.updated_at > e.created_at, q.wake_at <= now() FROM webhook_endpoints e, webhook_queues q`).
			Scan(&failing, &updated, &due))
		if failing != test.failing || !updated || due != strings.HasPrefix(test.name, "enabled") {
			t.Errorf("%s: failing: %t, updated: %t, the queue is due: %t", test.name, failing, updated, due)
		}
	}
}

var errRefused = errors.New("refused")

// refuse returns a function that refuses to send events of a type.
func refuse(eventType string) func(types []string) error {
	return func(types []string) error {
		if slices.Contains(types, eventType) {
			return errRefused
		}
		return nil
	}
}

// TestMaySend: a new URL requires that the types of the present subscription may be sent there.
func TestMaySend(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e, _, err := f.Create(t.Context(), account, "https://a.example/", "", []string{events.AlertOpened})
	must(t, err)
	for url, want := range map[string]error{e.URL: nil, "https://b.example/": errRefused} {
		c := Change{URL: &url, Events: []string{events.RunFailed}}
		if _, err := f.Update(t.Context(), account, e.ID, c, refuse(events.AlertOpened)); err != want {
			t.Errorf("%s: %v, want %v", url, err, want)
		}
		f.Exec(t, `UPDATE webhook_endpoints SET events = '{alert.opened}'`)
	}
}

// TestURLGivenToAnother: an endpoint cannot be created with the URL that another one is just being given.
func TestURLGivenToAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	tx := f.begin(t, `UPDATE webhook_endpoints SET url = 'https://b.example/' WHERE account_id = $1 AND id = $2`, account, e.ID)
	created := start(func() error { return errOf2(f.Create(t.Context(), account, "https://b.example/", "", []string{All})) })
	storetest.UntilWaiting(t, f.Pool, "transactionid")
	must(t, tx.Commit(t.Context()))
	if err := <-created; err != ErrEndpointExists {
		t.Errorf("got %v", err)
	}
}

// TestLimitsOfEndpoints: of many concurrent requests exactly as many succeed as fit.
func TestLimitsOfEndpoints(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	create := func(n int, url string, want map[error]int) {
		t.Helper()
		var all []<-chan error
		for i := range n {
			all = append(all, start(func() error {
				return errOf2(f.Create(t.Context(), account, strings.Replace(url, "N", strconv.Itoa(i), 1), "", []string{All}))
			}))
		}
		got := make(map[error]int)
		for _, created := range all {
			got[<-created]++
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
	create(8, "https://same.example/", map[error]int{nil: 1, ErrEndpointExists: 7})
	create(16, "https://example.com/N", map[error]int{nil: 9, ErrTooManyEndpoints: 7})
	all, err := List(t.Context(), f.Pool, account, store.Page{Limit: 20})
	if err != nil || len(all) != MaxEndpoints {
		t.Fatal(len(all), err)
	}
	must(t, f.Delete(t.Context(), account, all[3].ID))
	f.endpoint(t, account, "https://example.com/next")
}

// TestRequestLimits: tests and resends have limits per endpoint and per host name.
func TestRequestLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://example.com/")
	event := f.record(t, account, 1)[0]
	f.Exec(t, `UPDATE webhook_queues SET wake_at = 'infinity'`)
	var first *events.Event
	for i := range maxRequested {
		got, err := f.Test(t.Context(), account, e.ID)
		if err != nil {
			t.Fatal(i, err)
		}
		if i == 0 {
			first = got
			if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE wake_at <= now()`); n != 1 {
				t.Error("a test does not wake the queue")
			}
		}
		f.Exec(t, `DELETE FROM webhook_hosts`)
	}
	if got, want := string(first.Data), `{"webhook_id":"`+e.ID.Text("wh")+`"}`; first.Type != events.WebhookTest || got != want {
		t.Errorf("%+v", first)
	}
	tooMany := func(err error) bool { _, ok := errors.AsType[*TooManyDeliveriesError](err); return ok }
	if _, err := f.Test(t.Context(), account, e.ID); !tooMany(err) {
		t.Errorf("one more test: %v", err)
	}
	if _, err := f.Resend(t.Context(), account, e.ID, event, mayReadAll); !tooMany(err) {
		t.Errorf("a resend: %v", err)
	}
	for due, want := range map[string]time.Duration{"-1 second": 5 * time.Second, "10 minutes": 10 * time.Minute, "2 hours": time.Hour} {
		f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() + $1::interval WHERE requested`, due)
		_, err := f.Test(t.Context(), account, e.ID)
		if e, _ := errors.AsType[*TooManyDeliveriesError](err); e == nil || e.RetryAfter > want || e.RetryAfter < want-30*time.Second {
			t.Errorf("one more test while others are due in %s: %+v, want %v", due, err, want)
		}
	}
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 hour' WHERE event_id = $1`, first.ID)
	d, err := f.Resend(t.Context(), account, e.ID, first.ID, mayReadAll)
	if err != nil || d.Status != "pending" || d.Type != events.WebhookTest || d.EventID != first.ID || time.Until(*d.NextAttemptAt) > time.Minute {
		t.Errorf("a resend of what is counted already: %+v, %v", d, err)
	}
	if _, err := f.Resend(t.Context(), account, e.ID, store.NewID(), mayReadAll); err != events.ErrNotFound {
		t.Errorf("no such event: %v", err)
	}
	if _, err := f.Resend(t.Context(), account, e.ID, event, func(string) bool { return false }); err != events.ErrNotFound {
		t.Errorf("an event that the caller may not read: %v", err)
	}
	f.Exec(t, `
UPDATE webhook_deliveries SET status = 'delivered', attempts = 1, last_status = 200, next_attempt_at = NULL, delivered_at = now()
WHERE event_id IN ($1, $2)`, first.ID, event)
	if d, err := f.Resend(t.Context(), account, e.ID, event, mayReadAll); err != nil || d.LastStatus != nil {
		t.Errorf("a resend when a test is delivered: %+v, %v", d, err)
	}
	if _, err := f.Test(t.Context(), account, e.ID); !tooMany(err) {
		t.Errorf("one more test than with the resend: %v", err)
	}
	f.disable(t, account, e)
	if _, err := f.Test(t.Context(), account, e.ID); err != ErrDisabled {
		t.Errorf("disabled: %v", err)
	}

	// One host name, from two accounts and in several spellings.
	f.Exec(t, `DELETE FROM webhook_hosts`)
	f.Exec(t, `UPDATE webhook_endpoints SET disabled_reason = NULL`)
	f.Exec(t, `UPDATE webhook_deliveries SET requested = false`)
	other := f.NewAccount(t)
	e2 := f.endpoint(t, other, "https://EXAMPLE.com.:8443/")
	// The row of a second in the near future counts as the present second, so that the test does not depend on the
	// clock.
	f.Exec(t, `INSERT INTO webhook_hosts VALUES ('example.com', now() + interval '25 seconds', $1)`, maxPerHost-2)
	for i := range 4 {
		_, err := f.Test(t.Context(), []store.ID{account, other}[i%2], []store.ID{e.ID, e2.ID}[i%2])
		if refused := i >= 2; tooMany(err) != refused || !refused && err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	// The database's clock was ahead.
	f.Exec(t, `UPDATE webhook_hosts SET second = now() + interval '1 hour'`)
	if _, err := f.Test(t.Context(), account, e.ID); err != nil {
		t.Error(err)
	}
	if n := f.Count(t, `SELECT requested FROM webhook_hosts WHERE second <= now()`); n != 1 {
		t.Errorf("%d requests in the present second", n)
	}
}

// TestEnableWithURLWhileCreated: a change of the URL that also enables the endpoint, and the creation of an endpoint
// with that URL, do not deadlock.
func TestEnableWithURLWhileCreated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	f.disable(t, account, e)
	tx := f.begin(t, lockAccount, account)
	updated := start(func() error {
		return errOf(f.Update(t.Context(), account, e.ID, Change{URL: new("https://b.example/"), Enabled: new(true)}, maySendAll))
	})
	storetest.UntilWaiting(t, f.Pool, "transactionid")
	must(t, errOf(one[Endpoint](t.Context(), tx, nil, insertEndpoint, account, store.NewID(), 2, "https://b.example/",
		"", []string{All})))
	must(t, tx.Commit(t.Context()))
	if err := <-updated; err != ErrEndpointExists {
		t.Errorf("got %v", err)
	}
}

// TestTypesOfManyPendingDeliveries: beyond a number of pending deliveries, a new URL requires that all types may be
// sent there.
func TestTypesOfManyPendingDeliveries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	add := func(n int) {
		f.Exec(t, `
WITH event AS (
  INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT $1, gen_random_uuid(), 'alert.opened', $1, '{}' FROM generate_series(1, $3) RETURNING id)
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT $1, id, $2 FROM event`, account, e.ID, n)
	}
	change := func(url string) error {
		return errOf(f.Update(t.Context(), account, e.ID, Change{URL: &url}, refuse(events.RecommendationSuggested)))
	}
	add(maxTyped - 1)
	if err := change("https://b.example/"); err != nil {
		t.Error(err)
	}
	add(1)
	if err := change("https://c.example/"); err != errRefused {
		t.Errorf("got %v", err)
	}
	f.Exec(t, `
UPDATE webhook_deliveries SET status = 'failed', attempts = 1, next_attempt_at = NULL
WHERE event_id = (SELECT event_id FROM webhook_deliveries LIMIT 1)`)
	if err := change("https://c.example/"); err != nil {
		t.Errorf("when one delivery has failed: %v", err)
	}
}

// TestURLWhileEventIsRecorded: while an event waits to be recorded, a webhook is unsubscribed from its type and gets
// another URL. The event is not delivered there.
func TestURLWhileEventIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	accounts := []store.ID{f.NewAccount(t), f.NewAccount(t)}
	slices.SortFunc(accounts, store.ID.Compare) // the order in which their queues are locked
	held, account := accounts[0], accounts[1]
	f.endpoint(t, held, "https://a.example/")
	e := f.endpoint(t, account, "https://a.example/")
	holder := f.begin(t, lockAccount, held)
	recorded := start(func() error {
		return f.tryToRecord(t, cause(held, events.AlertOpened), cause(account, events.AlertOpened))
	})
	storetest.UntilWaiting(t, f.Pool, "transactionid") // the event, for the queue that is held
	must(t, errOf(f.Update(t.Context(), account, e.ID, Change{Events: []string{events.WebhookTest}}, nil)))
	must(t, errOf(f.Update(t.Context(), account, e.ID, Change{URL: new("https://b.example/")}, refuse(events.AlertOpened))))
	must(t, holder.Commit(t.Context()))
	must(t, <-recorded)
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE account_id = $1`, account); n != 0 {
		t.Errorf("%d events are delivered to the new URL", n)
	}
}

// TestURLWhileEventIsCommitted: a change of the URL waits for the transaction that has queued an event that may not be
// sent there.
func TestURLWhileEventIsCommitted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	tx := f.begin(t, "")
	must(t, Record(t.Context(), tx, []events.Cause{cause(account, events.AlertOpened)}))
	must(t, errOf(f.Update(t.Context(), account, e.ID, Change{Events: []string{events.WebhookTest}}, nil)))
	moved := start(func() error {
		return errOf(f.Update(t.Context(), account, e.ID, Change{URL: new("https://b.example/")}, refuse(events.AlertOpened)))
	})
	storetest.UntilWaiting(t, f.Pool, "transactionid") // the change, for the queue
	must(t, tx.Commit(t.Context()))
	if err := <-moved; err != errRefused {
		t.Errorf("got %v", err)
	}
}

package delivery

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

// TestRetries: attempts follow the schedule until the last; a success ends the time of failures.
func TestRetries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	// An attempt waits for the test, so that the test sees the result of the one before it, however slow the machine is.
	arrived := make(chan time.Time)
	var status atomic.Int32
	status.Store(500)
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- time.Now():
		case <-r.Context().Done():
		}
		w.WriteHeader(int(status.Load()))
	})
	e := f.endpoint(t, account, r.URL)
	f.dispatch(t, func(d *Dispatcher) { d.sender.timeout = time.Minute })
	id := f.record(t, account, 1)[0]
	wants := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	attempted := func(n int) (d webhooks.Delivery) {
		storetest.Eventually(t, "the next attempt", func() bool {
			all, err := webhooks.Deliveries(t.Context(), f.Pool, account, e.ID, "", store.Page{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			d = all[0]
			return d.Attempts == n
		})
		return d
	}
	for i, want := range wants {
		began := <-arrived
		d := attempted(i + 1) // between began and now
		if d.NextAttemptAt.Sub(began) < want*8/10 || time.Until(*d.NextAttemptAt) > want*12/10 {
			t.Errorf("attempt %d: next %v to %v later, want %v ± 20 %%", i+1, time.Until(*d.NextAttemptAt), d.NextAttemptAt.Sub(began), want)
		}
		f.due(t, account)
	}
	<-arrived
	if d := attempted(10); d.Status != "failed" || d.NextAttemptAt != nil || *d.LastError != webhooks.ErrorStatus {
		t.Errorf("the last attempt: %+v", d)
	}

	// A resend begins anew.
	status.Store(204)
	if d, err := f.Resend(t.Context(), account, e.ID, id, mayReadAll); err != nil || d.Attempts != 0 || d.Status != "pending" || d.LastError != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	<-arrived
	if d := attempted(1); d.Status != "delivered" || d.LastError != nil || *d.LastStatus != 204 {
		t.Errorf("resent: %+v", d)
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE failing_since IS NOT NULL`); n != 0 {
		t.Error("failing_since is still set")
	}
	if r.times(id) != 11 || r.received() != 1 {
		t.Errorf("received %d events, one of them %d times", r.received(), r.times(id))
	}
}

// TestDelays: retries of deliveries that failed together are spread over 20 % before and after the time of the schedule.
func TestDelays(t *testing.T) {
	t.Parallel()
	var delays []time.Duration
	for range 100 {
		delay, _ := nextDelay(1, result{})
		delays = append(delays, delay)
	}
	if least, most := slices.Min(delays), slices.Max(delays); least < 4*time.Second || most > 6*time.Second || most-least < time.Second {
		t.Errorf("delays are from %v to %v", least, most)
	}
}

// TestEachAttemptIsSigned: every attempt has the time of the attempt, which its signature covers. The id and the body, which
// has the time of the event, stay the same.
func TestEachAttemptIsSigned(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	type attempt struct {
		header http.Header
		body   string
		at     time.Time
	}
	attempts := make(chan attempt, 10)
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		attempts <- attempt{r.Header, string(body), time.Now()}
		w.WriteHeader(500)
	})
	e, secret, err := f.Create(t.Context(), account, r.URL, "", []string{webhooks.All})
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := NewReceiver(secret)
	if err != nil {
		t.Fatal(err)
	}
	id := f.record(t, account, 1)[0]
	f.Exec(t, `UPDATE events SET created_at = now() - interval '1 hour'`)
	event, err := events.Get(t.Context(), f.Pool, account, id)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.dispatch(t, nil)
	for n := range 2 {
		a := <-attempts
		if err := receiver.Verify(a.header, []byte(a.body), a.at); err != nil {
			t.Errorf("attempt %d: %v", n+1, err)
		}
		seconds, err := strconv.ParseInt(a.header.Get("webhook-timestamp"), 10, 64)
		if err != nil || seconds < began.Unix() || seconds > a.at.Unix() {
			t.Errorf("attempt %d: webhook-timestamp %s, want %d to %d", n+1, a.header.Get("webhook-timestamp"), began.Unix(), a.at.Unix())
		}
		a.header.Set("webhook-timestamp", strconv.FormatInt(seconds+1, 10))
		if err := receiver.Verify(a.header, []byte(a.body), a.at); err != ErrSignature {
			t.Errorf("attempt %d with another time: %v", n+1, err)
		}
		if a.header.Get("webhook-id") != id.Text("evt") || a.body != string(message(events.RunCompleted, event.CreatedAt, event.Data)) {
			t.Errorf("attempt %d: %s %s", n+1, a.header.Get("webhook-id"), a.body)
		}
		storetest.Eventually(t, "the result is written", func() bool { return f.Count(t, `SELECT attempts FROM webhook_deliveries`) > n })
		storetest.Eventually(t, "the next second", func() bool { return time.Now().Unix() > seconds })
		began = time.Now()
		f.due(t, account)
	}
	if d := f.deliveryWhen(t, account, e.ID, "pending"); d.Attempts < 2 {
		t.Errorf("%+v", d)
	}
}

// TestFailing: three days of failures disable an endpoint; pending deliveries wait until it is enabled.
func TestFailing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	var status atomic.Int32
	status.Store(500)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	e := f.endpoint(t, account, r.URL)
	f.dispatch(t, nil)
	disabled := func() string {
		got, err := f.Get(t.Context(), account, e.ID)
		if err != nil || got.DisabledReason == nil {
			return ""
		}
		return *got.DisabledReason
	}
	f.record(t, account, 1)
	f.deliveryWhen(t, account, e.ID, "pending")
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now() - interval '2 days 23 hours'`)
	f.due(t, account)
	storetest.Eventually(t, "a second attempt", func() bool { return f.Count(t, `SELECT attempts FROM webhook_deliveries`) == 2 })
	if got := disabled(); got != "" {
		t.Errorf("disabled %q before three days", got)
	}
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now() - interval '3 days 1 second'`)
	f.due(t, account)
	storetest.Eventually(t, "the endpoint is disabled", func() bool { return disabled() == webhooks.Failing })
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE failing_since < now() - interval '3 days'`); n != 1 {
		t.Error("failing_since has changed")
	}
	f.record(t, account, 1) // queues nothing
	f.due(t, account)
	status.Store(200)
	if _, err := f.Update(t.Context(), account, e.ID, webhooks.Change{Enabled: new(true)}, nil); err != nil {
		t.Fatal(err)
	}
	f.deliveryWhen(t, account, e.ID, "delivered")
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries`); n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

// TestChangesHoldForPending: a changed URL and a rotated secret hold for what is pending.
func TestChangesHoldForPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	old := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	type signed struct {
		header http.Header
		body   []byte
	}
	requests := make(chan signed, 100)
	next := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- signed{r.Header, body}
	})
	e := f.endpoint(t, account, old.URL)
	d := f.dispatcher()
	deliver := func() {
		t.Helper()
		if a := d.accounts[account]; a != nil {
			a.readAt = time.Now().Add(-2 * rereadAccount)
		}
		must(t, d.round(t.Context(), t.Context(), true))
		d.attempts.Wait()
		must(t, d.writeOutcomes(t.Context()))
	}
	f.record(t, account, 3)
	deliver()
	if old.received() != 3 || d.Stats().Accounts != 1 {
		t.Fatalf("%d events were received, %d accounts are owned", old.received(), d.Stats().Accounts)
	}
	var receivers []*Receiver // with the latest secret and with the one before
	for range 2 {
		_, secret, err := f.Rotate(t.Context(), account, e.ID)
		must(t, err)
		receiver, err := NewReceiver(secret)
		must(t, err)
		receivers = append(receivers, receiver)
	}
	verify := func() {
		t.Helper()
		r := <-requests
		if n := len(strings.Fields(r.header.Get("webhook-signature"))); n != len(receivers) {
			t.Errorf("%d signatures, want %d", n, len(receivers))
		}
		for _, receiver := range receivers {
			if err := receiver.Verify(r.header, r.body, time.Now()); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := f.Update(t.Context(), account, e.ID, webhooks.Change{URL: &next.URL}, maySendAll)
	must(t, err)
	f.due(t, account)
	deliver()
	if next.received() != 3 {
		t.Fatalf("%d events were received at the new URL", next.received())
	}
	for range 3 {
		verify()
	}
	receivers = receivers[1:]
	f.Exec(t, `UPDATE webhook_endpoints SET previous_until = now()`)
	f.record(t, account, 1)
	deliver()
	verify()
}

// TestHealthOfEachURL: outcomes of attempts to the URL before a change say nothing about the new one, also where they are
// written together.
func TestHealthOfEachURL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.NewAccount(t)
	e := f.endpoint(t, id, "https://new.example/")
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now() - interval '1 hour'`)
	owner := &account{id: id}
	owned := &endpoint{account: owner, id: e.ID}
	d := New(Config{Pool: f.Pool, Master: f.master})
	for _, group := range [][]outcome{
		{{url: "https://old.example/", status: "failed", result: result{status: 410, err: webhooks.ErrorStatus}, gone: true}, {url: "https://new.example/", status: "pending", result: result{err: webhooks.ErrorTimeout}}},
		{{url: "https://old.example/", status: "delivered", result: result{status: 200}}, {url: "https://new.example/", status: "pending", result: result{err: webhooks.ErrorTimeout}}},
	} {
		events := f.record(t, id, len(group))
		slices.SortFunc(events, store.ID.Compare) // the order in which outcomes are written
		for i, event := range events {
			group[i].delivery = &delivery{endpoint: owned, event: event}
		}
		if err := d.write(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE disabled_reason IS NULL AND failing_since < now() - interval '59 minutes'`); n != 1 {
			t.Errorf("after %s for the old URL the new one is disabled, or no longer failing", group[0].status)
		}
	}
}

// TestLateOutcome: the outcome of an attempt that began before its event was resent, or that is written again, changes nothing.
func TestLateOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.NewAccount(t)
	e := f.endpoint(t, id, "https://a.example/")
	event := f.record(t, id, 1)[0]
	d := New(Config{Pool: f.Pool, Master: f.master})
	attempt := &delivery{endpoint: &endpoint{account: &account{id: id}, id: e.ID}, event: event}
	write := func(r result) {
		t.Helper()
		if err := d.write(t.Context(), []outcome{newOutcome(attempt, e.URL, r)}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(status string, attempts int) {
		t.Helper()
		if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = $1 AND attempts = $2`, status, attempts); n != 1 {
			t.Errorf("the delivery is not %s after %d attempts", status, attempts)
		}
	}
	write(result{err: webhooks.ErrorTimeout})
	write(result{err: webhooks.ErrorTimeout})
	want("pending", 1)
	if _, err := f.Resend(t.Context(), id, e.ID, event, mayReadAll); err != nil {
		t.Fatal(err)
	}
	write(result{status: 200})
	attempt.attempts = 1
	write(result{status: 200})
	want("pending", 0)
}

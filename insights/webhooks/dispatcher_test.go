package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/store"
)

// TestDelivery: an event reaches an endpoint in the documented form, signed, and the delivery reports it.
func TestDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	type received struct {
		header http.Header
		body   []byte
	}
	got := make(chan received, 10)
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header, body}
	})
	e, secret, err := f.Create(t.Context(), account, r.URL+"/hook", "", []string{RunCompleted})
	if err != nil {
		t.Fatal(err)
	}
	f.dispatch(t, nil)
	id := f.record(t, account, 1)[0]
	request := <-got

	event, err := f.Event(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	body := decode(t, request.body)
	want := map[string]any{"type": RunCompleted, "timestamp": event.CreatedAt.UTC().Format(time.RFC3339Nano), "data": decode(t, event.Data)}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got := request.header.Get("webhook-id"); got != id.Text("evt") {
		t.Errorf("webhook-id %s, want %s", got, id.Text("evt"))
	}
	if got := request.header.Get("User-Agent"); got != "aiv-webhooks/1" {
		t.Errorf("User-Agent %s", got)
	}
	if got := request.header.Values("Idempotency-Key"); got != nil {
		t.Errorf("Idempotency-Key %q was sent", got)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("secret %s: %v", secret, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(request.header.Get("webhook-id") + "." + request.header.Get("webhook-timestamp") + "." + string(request.body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); request.header.Get("webhook-signature") != want {
		t.Errorf("webhook-signature %s, want %s", request.header.Get("webhook-signature"), want)
	}

	d := f.deliveryWhen(t, account, e.ID, "delivered")
	wantDelivery := Delivery{EventID: id, Type: RunCompleted, Status: "delivered", Attempts: 1, LastStatus: new(200),
		CreatedAt: event.CreatedAt, DeliveredAt: d.DeliveredAt}
	if diff := cmp.Diff(wantDelivery, d, utc); diff != "" || d.DeliveredAt == nil {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

var utc = cmp.Transformer("UTC", time.Time.UTC)

// deliveryWhen waits until the endpoint's only delivery has a status and was attempted, and returns it.
func (f *fixture) deliveryWhen(t testing.TB, account, endpoint store.ID, status string) (d Delivery) {
	t.Helper()
	eventually(t, "the delivery is "+status, func() bool {
		all, err := f.Deliveries(t.Context(), account, endpoint, status, store.Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].Attempts > 0 {
			d = all[0]
			return true
		}
		return false
	})
	return d
}

// due makes all pending deliveries of an account due now.
func (f *fixture) due(t testing.TB, account store.ID) {
	t.Helper()
	f.exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1 AND status = 'pending'`, account)
	f.exec(t, wakeQueue, account)
}

// TestOutcomes: what an endpoint does, what the delivery reports, and what becomes of the endpoint.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	target := newReceiver(t, nil)
	respond := func(status int, header ...string) string {
		return newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}).URL
	}
	f.dispatch(t, func(d *Dispatcher) {
		d.sender.timeout = 3 * time.Second
	})
	for _, test := range []struct {
		name, url         string
		status, lastError string
		lastStatus        int
		after, before     time.Duration
		disabled          string
		failingSince      bool
	}{
		{name: "200", url: respond(200), status: "delivered", lastStatus: 200},
		{name: "299", url: respond(299), status: "delivered", lastStatus: 299},
		{name: "500", url: respond(500), status: "pending", lastError: "status", lastStatus: 500, after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
		{name: "404", url: respond(404), status: "pending", lastError: "status", lastStatus: 404, after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
		{name: "Retry-After", url: respond(429, "Retry-After", "3600"), status: "pending", lastError: "status", lastStatus: 429,
			after: time.Hour, before: time.Hour, failingSince: true},
		{name: "Retry-After beyond a day", url: respond(503, "Retry-After", "100000000"), status: "pending", lastError: "status", lastStatus: 503,
			after: 24 * time.Hour, before: 24 * time.Hour, failingSince: true},
		{name: "redirect", url: respond(307, "Location", target.URL), status: "pending", lastError: "redirect", lastStatus: 307,
			after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
		{name: "410", url: respond(410), status: "failed", lastError: "status", lastStatus: 410, disabled: Gone, failingSince: true},
		{name: "TLS", url: secure.URL, status: "pending", lastError: "tls", after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
		{name: "closed port", url: closed.URL, status: "pending", lastError: "connection", after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
		{name: "hanging", url: newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL, status: "pending", lastError: "timeout",
			after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
		{name: "endless body", url: newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		}).URL, status: "delivered", lastStatus: 200},
		{name: "slow body", url: newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}).URL, status: "delivered", lastStatus: 200},
		{name: "large header", url: respond(200, "X-Large", strings.Repeat("a", 64<<10)), status: "pending", lastError: "connection",
			after: 4 * time.Second, before: 6 * time.Second, failingSince: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			account := f.account(t)
			e := f.endpoint(t, account, test.url)
			f.record(t, account, 1)
			d := f.deliveryWhen(t, account, e.ID, test.status)
			lastStatus, lastError := 0, ""
			if d.LastStatus != nil {
				lastStatus = *d.LastStatus
			}
			if d.LastError != nil {
				lastError = *d.LastError
			}
			if lastStatus != test.lastStatus || lastError != test.lastError || d.Attempts != 1 {
				t.Errorf("%d %q after %d attempts", lastStatus, lastError, d.Attempts)
			}
			if (d.NextAttemptAt != nil) != (test.status == "pending") {
				t.Errorf("next attempt at %v", d.NextAttemptAt)
			}
			if test.status == "pending" {
				wait := time.Until(*d.NextAttemptAt)
				if wait > test.before || wait < test.after-3*time.Second { // what has passed since
					t.Errorf("next attempt in %v", wait)
				}
			}
			if n := f.count(t, `SELECT count(*) FROM webhook_endpoints WHERE id = $1 AND failing_since IS NOT NULL`, e.ID); (n == 1) != test.failingSince {
				t.Errorf("failing_since is set: %v", n == 1)
			}
			got, err := f.Get(t.Context(), account, e.ID)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			if got.DisabledReason != nil {
				reason = *got.DisabledReason
			}
			if reason != test.disabled {
				t.Errorf("disabled: %q, want %q", reason, test.disabled)
			}
		})
	}
	t.Cleanup(func() {
		if target.received() != 0 {
			t.Error("a redirect was followed")
		}
	})
}

// TestRetries: attempts follow the schedule until the last; a success ends the time of failures.
func TestRetries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	var status atomic.Int32
	status.Store(500)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	e := f.endpoint(t, account, r.URL)
	f.dispatch(t, nil)
	id := f.record(t, account, 1)[0]
	wants := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	attempted := func(n int) (d Delivery) {
		eventually(t, "the next attempt", func() bool {
			all, err := f.Deliveries(t.Context(), account, e.ID, "", store.Page{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			d = all[0]
			return d.Attempts == n
		})
		return d
	}
	for i, want := range wants {
		d := attempted(i + 1)
		wait := time.Until(*d.NextAttemptAt)
		if wait > want*12/10 || wait < want*8/10-3*time.Second {
			t.Errorf("attempt %d: next in %v, want %v ± 20 %%", i+1, wait, want)
		}
		f.due(t, account)
	}
	if d := attempted(10); d.Status != "failed" || d.NextAttemptAt != nil || *d.LastError != ErrorStatus {
		t.Errorf("the last attempt: %+v", d)
	}

	// A resend begins anew.
	status.Store(204)
	if d, err := f.Resend(t.Context(), account, e.ID, id); err != nil || d.Attempts != 0 || d.Status != "pending" || d.LastError != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	if d := attempted(1); d.Status != "delivered" || d.LastError != nil || *d.LastStatus != 204 {
		t.Errorf("resent: %+v", d)
	}
	if n := f.count(t, `SELECT count(*) FROM webhook_endpoints WHERE failing_since IS NOT NULL`); n != 0 {
		t.Error("failing_since is still set")
	}
	if r.events[id.Text("evt")] != 11 || len(r.events) != 1 {
		t.Errorf("received %v", r.events)
	}
}

// TestFailing: three days of failures disable an endpoint; pending deliveries wait until it is enabled.
func TestFailing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
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
	f.exec(t, `UPDATE webhook_endpoints SET failing_since = now() - interval '2 days 23 hours'`)
	f.due(t, account)
	eventually(t, "a second attempt", func() bool { return f.count(t, `SELECT attempts FROM webhook_deliveries`) == 2 })
	if got := disabled(); got != "" {
		t.Errorf("disabled %q before three days", got)
	}
	f.exec(t, `UPDATE webhook_endpoints SET failing_since = now() - interval '3 days 1 second'`)
	f.due(t, account)
	eventually(t, "the endpoint is disabled", func() bool { return disabled() == Failing })
	f.record(t, account, 1) // queues nothing
	f.due(t, account)
	status.Store(200)
	if _, err := f.Update(t.Context(), account, e.ID, Change{Enabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	f.deliveryWhen(t, account, e.ID, "delivered")
	if n := f.count(t, `SELECT count(*) FROM webhook_deliveries`); n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

// TestLimitsInFlight: over two processes, at most 4 requests at a time go to an endpoint and 16 to an account.
func TestLimitsInFlight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	var now, most atomic.Int32
	pause := func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
	}
	var receivers []*receiver
	for range 6 {
		r := newReceiver(t, pause)
		f.endpoint(t, account, r.URL)
		receivers = append(receivers, r)
	}
	f.dispatch(t, nil)
	f.dispatch(t, nil)
	f.record(t, account, 40)
	for i, r := range receivers {
		eventually(t, "all are received", func() bool { return r.received() == 40 })
		r.mu.Lock()
		if r.most > 4 {
			t.Errorf("endpoint %d: %d requests at a time", i, r.most)
		}
		r.mu.Unlock()
	}
	one := newReceiver(t, pause)
	other := f.account(t)
	f.endpoint(t, other, one.URL)
	f.record(t, other, 40)
	eventually(t, "all are received", func() bool { return one.received() == 40 })
	if one.most != 4 {
		t.Errorf("one endpoint: %d requests at a time", one.most)
	}
	if most.Load() != 16 {
		t.Errorf("%d requests at a time to the account", most.Load())
	}
}

// TestProcessThatEnded: what a process owned is delivered by another when the lease has ended.
func TestProcessThatEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	r := newReceiver(t, nil)
	f.endpoint(t, account, r.URL)
	f.record(t, account, 3)
	f.exec(t, `UPDATE webhook_queues SET owner = gen_random_uuid(), wake_at = now() + interval '1 second'`)
	began := time.Now()
	f.dispatch(t, nil)
	f.record(t, account, 1) // does not end the lease
	eventually(t, "all are received", func() bool { return r.received() == 4 })
	if time.Since(began) < 900*time.Millisecond {
		t.Error("the lease was ignored")
	}
	if leaseTime+renewEvery > time.Minute {
		t.Error("a lease may outlast its process by a minute")
	}
}

// TestStop: a dispatcher that stops lets attempts end, writes their outcomes and gives its accounts back.
func TestStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-answer
	})
	f.endpoint(t, account, r.URL)
	f.record(t, account, 20)
	_, stop := f.dispatch(t, nil)
	<-arrived
	time.AfterFunc(50*time.Millisecond, func() { close(answer) })
	stop()
	delivered := f.count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`)
	if delivered == 0 || delivered != r.received() {
		t.Errorf("%d delivered, %d received", delivered, r.received())
	}
	if n := f.count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL`); n != 1 {
		t.Error("the account is still owned")
	}
	f.dispatch(t, nil)
	eventually(t, "all are received", func() bool { return r.received() == 20 })
}

// TestNoLostWakeups: two dispatchers deliver every event soon, however recording and giving back accounts interleave.
func TestNoLostWakeups(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newReceiver(t, nil)
	f.dispatch(t, nil)
	f.dispatch(t, nil)
	var recorders sync.WaitGroup
	const accounts, each = 4, 50
	for range accounts {
		account := f.account(t)
		f.endpoint(t, account, r.URL)
		recorders.Go(func() {
			for range each {
				f.record(t, account, 1)
				time.Sleep(rand.N(30 * time.Millisecond))
			}
		})
	}
	recorders.Wait()
	eventually(t, "all are received", func() bool { return r.received() == accounts*each })
	eventually(t, "all are delivered", func() bool {
		return f.count(t, `SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered'`) == 0
	})
	eventually(t, "all accounts are given back", func() bool {
		return f.count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`) == accounts
	})
	violations, err := store.Verify(t.Context(), f.pool, Invariants())
	if err != nil || len(violations) > 0 {
		t.Errorf("%+v, %v", violations, err)
	}
}

// TestChangesHoldForPending: a changed URL and a rotated secret hold for what is pending.
func TestChangesHoldForPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	old := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	signatures := make(chan string, 100)
	next := newReceiver(t, func(w http.ResponseWriter, r *http.Request) { signatures <- r.Header.Get("webhook-signature") })
	e := f.endpoint(t, account, old.URL)
	f.dispatch(t, nil)
	f.record(t, account, 3)
	eventually(t, "all were attempted", func() bool { return f.count(t, `SELECT count(*) FROM webhook_deliveries WHERE attempts = 1`) == 3 })
	for range 2 {
		if _, _, err := f.Rotate(t.Context(), account, e.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Update(t.Context(), account, e.ID, Change{URL: &next.URL}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are received", func() bool {
		f.due(t, account)
		return next.received() == 3
	})
	if got := strings.Fields(<-signatures); len(got) != 2 {
		t.Errorf("signatures %q", got)
	}
	for len(signatures) > 0 {
		<-signatures
	}
	f.exec(t, `UPDATE webhook_endpoints SET previous_until = now()`)
	eventually(t, "the previous secret has ended", func() bool {
		f.exec(t, `DELETE FROM webhook_hosts`)
		if _, err := f.Test(t.Context(), account, e.ID); err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(<-signatures)) == 1
	})
}

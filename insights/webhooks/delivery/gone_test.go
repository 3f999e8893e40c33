package delivery

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"aiv/insights/webhooks"
	"aiv/store"
)

// enable enables or disables an endpoint, for its customer.
func (f *fixture) enable(t *testing.T, e *webhooks.Endpoint, account store.ID, enabled bool) {
	t.Helper()
	_, err := f.Update(t.Context(), account, e.ID, webhooks.Change{Enabled: &enabled}, nil)
	must(t, err)
}

// TestGoneAfterChangeOfURL: after a 410 from the URL before a change, what is pending is delivered to the new URL.
func TestGoneAfterChangeOfURL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	respond := make(chan struct{})
	old := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		<-respond
		w.WriteHeader(http.StatusGone)
	})
	next := newReceiver(t, nil)
	e := f.endpoint(t, account, old.URL)
	f.record(t, account, 6)
	d := f.dispatcher()
	must(t, d.round(t.Context(), t.Context(), true)) // starts 4 attempts
	_, err := f.Update(t.Context(), account, e.ID, webhooks.Change{URL: &next.URL}, maySendAll)
	must(t, err)
	d.reread()
	must(t, d.readAccounts(t.Context()))
	close(respond)
	d.attempts.Wait()
	if d.accounts[account].endpoints[0].gone {
		t.Error("the endpoint counts as gone")
	}
	must(t, d.writeOutcomes(t.Context()))
	d.deliver(t)
	equal(t, 2, next.received(), "events at the new URL")
}

// TestGoneBeforeItIsWritten: after a 410 no attempt starts, even if the endpoint is read again before the outcome is
// written. Its other deliveries wait.
func TestGoneBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.NewAccount(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	f.endpoint(t, id, r.URL)
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now()`) // so that one attempt starts at a time
	f.record(t, id, 3)
	d := f.dispatcher()
	for range 3 {
		d.reread()
		must(t, d.round(t.Context(), t.Context(), true))
		d.attempts.Wait()
	}
	must(t, d.writeOutcomes(t.Context()))
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'pending' AND attempts = 0`); n != 2 || r.received() != 1 {
		t.Errorf("%d deliveries wait, want 2; %d events were received, want 1", n, r.received())
	}
	d.deliver(t)
	equal(t, 0, d.Stats().Accounts, "accounts")
}

// TestGoneWhileRead: deliveries that were being read when the endpoint responded with 410 are not attempted.
func TestGoneWhileRead(t *testing.T) {
	t.Parallel()
	respond := make(chan struct{})
	f, account, r := newPair(t, func(w http.ResponseWriter, _ *http.Request) {
		<-respond
		w.WriteHeader(http.StatusGone)
	})
	f.record(t, account, 20)
	h := &hook{sql: readDue}
	d := f.hookedDispatcher(t, h)
	must(t, d.round(t.Context(), t.Context(), true))
	h.end = func() {
		close(respond)
		d.attempts.Wait()
		h.end = nil
	}
	must(t, d.round(t.Context(), t.Context(), true))
	d.attempts.Wait()
	equal(t, 4, r.received(), "events were received")
}

// TestEnabledAfterGone: an endpoint that was disabled because of a 410, and enabled before the process has read it
// again, gets events.
func TestEnabledAfterGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	var status atomic.Int32
	status.Store(http.StatusGone)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	e := f.endpoint(t, account, r.URL)
	d := f.dispatcher()
	for range 2 {
		f.record(t, account, 1)
		d.deliver(t)
		f.enable(t, e, account, true)
		status.Store(http.StatusOK)
	}
	equal(t, 2, r.received(), "events were received")
}

// TestEnabledWhileInFlight: where an endpoint is disabled and enabled during an attempt, its other deliveries are
// attempted, and this one is not attempted again.
func TestEnabledWhileInFlight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r, respond := newHangingReceiver(t)
	e := f.endpoint(t, account, r.URL)
	f.record(t, account, 1)
	d := f.dispatcher()
	must(t, d.round(t.Context(), t.Context(), true))
	for _, enabled := range []bool{false, true} {
		f.enable(t, e, account, enabled)
		d.reread()
		must(t, d.readAccounts(t.Context()))
	}
	f.record(t, account, 1)
	must(t, d.round(t.Context(), t.Context(), true))
	equal(t, 2, d.Stats().InFlight, "attempts are in flight")
	close(respond)
	d.attempts.Wait()
	equal(t, 2, r.received(), "events were received")
}

// TestNoLongerEnabled: deliveries in memory to an endpoint that is disabled or deleted are not attempted, and its
// account is released. They are attempted when a disabled endpoint is enabled.
func TestNoLongerEnabled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, nil)
	d := f.dispatcher()
	var e *webhooks.Endpoint
	for i, stop := range []func(){
		func() { must(t, f.Delete(t.Context(), account, e.ID)) },
		func() { f.enable(t, e, account, false) },
	} {
		e = f.endpoint(t, account, fmt.Sprintf("%s/%d", r.URL, i))
		f.record(t, account, 1)
		d.stopping = true // no attempt starts
		d.deliver(t)
		d.stopping = false
		stop()
		d.deliver(t)
		if s := d.Stats(); r.received() != 0 || s.Accounts != 0 {
			t.Errorf("endpoint %d: %d events were received; %d accounts are owned", i, r.received(), s.Accounts)
		}
	}
	f.enable(t, e, account, true)
	d.deliver(t)
	equal(t, 1, r.received(), "events were received after the endpoint was enabled")
}

package delivery

import (
	"net/http"
	"testing"
	"time"

	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

// TestGoneAfterChangeOfURL: a 410 from the URL before a change neither disables the endpoint nor makes its account wait. What is
// pending is delivered to the new URL.
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
	d.accounts[account].readAt = time.Time{}
	must(t, d.readAccounts(t.Context()))
	close(respond)
	d.attempts.Wait()
	if d.accounts[account].endpoints[0].gone {
		t.Error("the endpoint counts as gone")
	}
	must(t, d.writeOutcomes(t.Context()))
	must(t, d.round(t.Context(), t.Context(), false))
	violations, err := store.Verify(t.Context(), f.Pool, webhooks.Invariants())
	if err != nil || len(violations) > 0 {
		t.Errorf("%+v, %v", violations, err)
	}
	run(t, d)
	storetest.Eventually(t, "the others are received", func() bool { return next.received() == 2 })
}

// TestGoneBeforeItIsWritten: after a 410 no attempt starts, even if the endpoint is read again before the outcome is written.
// Its other deliveries wait.
func TestGoneBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.NewAccount(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	f.endpoint(t, id, r.URL)
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now()`) // so that one attempt starts at a time
	f.record(t, id, 3)
	d := f.dispatcher()
	must(t, d.round(t.Context(), t.Context(), true))
	for range 2 {
		d.attempts.Wait()
		d.accounts[id].readAt = time.Time{}
		must(t, d.round(t.Context(), t.Context(), true))
	}
	must(t, d.writeOutcomes(t.Context()))
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'pending' AND attempts = 0`); n != 2 || r.received() != 1 {
		t.Errorf("%d deliveries wait, want 2; %d events were received, want 1", n, r.received())
	}
	d.accounts[id].readAt = time.Time{}
	must(t, d.round(t.Context(), t.Context(), true))
	if n := d.Stats().Accounts; n != 0 {
		t.Error("the account is not released")
	}
}

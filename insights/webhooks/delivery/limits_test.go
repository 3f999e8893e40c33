package delivery

import (
	"fmt"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

// TestHangingEndpoints: endpoints that fail and hang leave requests to another endpoint, of their account or of another
// one.
func TestHangingEndpoints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                          string
		inFlight, accounts, endpoints int // that hang, of each account
		failing                       bool
	}{
		{"of the same account", 1024, 1, 9, true},
		{"of other accounts", 4, 4, 1, true},
		{"of other accounts, which have not failed yet", 1024, 100, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			hanging, respond := newHangingReceiver(t)
			var account store.ID
			for range test.accounts {
				account = f.NewAccount(t)
				for i := range test.endpoints {
					f.endpoint(t, account, fmt.Sprintf("%s/%d", hanging.URL, i))
				}
				f.record(t, account, 10)
			}
			if test.failing {
				f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now()`)
			}
			if test.accounts > 1 {
				account = f.NewAccount(t)
			}
			healthy := newReceiver(t, nil)
			f.endpoint(t, account, healthy.URL)
			f.record(t, account, 40)
			d := f.dispatcher()
			d.turns.limits.inFlight = test.inFlight
			d.sender.timeout = 2 * waitTimeout
			run(t, d)
			t.Cleanup(func() { close(respond) })
			storetest.Eventually(t, "the healthy endpoint has its events", func() bool { return healthy.received() == 40 })
		})
	}
}

// TestAccountsTakeTurns: a process that owns as many accounts as it may releases one that has always something due, so
// that another account is served.
func TestAccountsTakeTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := f.dispatcher()
	d.turns.limits.accounts = 1
	first, second := newReceiver(t, nil), newReceiver(t, nil)
	for _, r := range []*receiver{first, second} {
		account := f.NewAccount(t)
		f.endpoint(t, account, r.URL)
		f.record(t, account, 100)
	}
	for range 3 { // claims the first account, releases it, claims the second
		d.deliver(t)
		for _, a := range d.accounts {
			a.claimedAt = time.Now().Add(-2 * yieldAfter)
		}
	}
	if first.received() == 0 || first.received() == 100 || second.received() == 0 {
		t.Errorf("%d events of the first account and %d of the second are received", first.received(), second.received())
	}
}

// TestYieldWithReadyDeliveries: an account that yields while deliveries are ready is released.
func TestYieldWithReadyDeliveries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := f.dispatcher()
	d.turns.limits.accounts = 1
	d.stopping = true // no attempt starts
	for range 2 {
		account := f.NewAccount(t)
		f.endpoint(t, account, attemptedURL)
		f.record(t, account, 1)
	}
	must(t, d.round(t.Context(), t.Context(), true))
	for _, a := range d.accounts {
		a.claimedAt = time.Now().Add(-2 * yieldAfter)
	}
	must(t, d.round(t.Context(), t.Context(), true))
	equal(t, 0, f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NOT NULL`), "accounts are still owned")
}

// TestBytesOfRound: a round reads events until those in memory have limits.bytes. Later rounds read the others.
func TestBytesOfRound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newReceiver(t, nil)
	const accounts, each = 10, 20
	for range accounts {
		account := f.NewAccount(t)
		f.endpoint(t, account, r.URL)
		f.record(t, account, each)
	}
	d := f.dispatcher()
	d.turns.limits.bytes = 1000
	d.stopping = true // no attempt starts
	for range 2 {
		must(t, d.round(t.Context(), t.Context(), true))
		if n := d.Stats().Bytes; n < d.turns.limits.bytes || n > d.turns.limits.bytes+200 { // the last event
			t.Errorf("%d bytes in memory, the limit is %d", n, d.turns.limits.bytes)
		}
	}
	d.stopping = false
	run(t, d)
	storetest.Eventually(t, "all are received", func() bool { return r.received() == accounts*each })
}

package delivery

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

// TestLimitsInFlight: over two processes, at most 4 requests at a time go to an endpoint and 16 to an account.
func TestLimitsInFlight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	var now, most atomic.Int32
	// delayed responds when as many requests as the limit are in flight, and a little later, so that one more would be
	// counted.
	delayed := func(limit int32) http.HandlerFunc {
		full := make(chan struct{})
		var fill sync.Once
		return func(_ http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == limit {
				fill.Do(func() { close(full) })
			}
			select {
			case <-full:
			case <-r.Context().Done():
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	respond := delayed(16)
	var receivers []*receiver
	for range 6 {
		r := newReceiver(t, respond)
		f.endpoint(t, account, r.URL)
		receivers = append(receivers, r)
	}
	f.dispatch(t, nil)
	f.dispatch(t, nil)
	f.record(t, account, 40)
	for i, r := range receivers {
		storetest.Eventually(t, "all are received", func() bool { return r.received() == 40 })
		r.mu.Lock()
		if r.most > 4 {
			t.Errorf("endpoint %d: %d requests at a time", i, r.most)
		}
		r.mu.Unlock()
	}
	if most.Load() != 16 {
		t.Errorf("%d requests at a time to the account", most.Load())
	}
	one := newReceiver(t, delayed(4))
	other := f.NewAccount(t)
	f.endpoint(t, other, one.URL)
	f.record(t, other, 40)
	storetest.Eventually(t, "all are received", func() bool { return one.received() == 40 })
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.most != 4 {
		t.Errorf("one endpoint: %d requests at a time", one.most)
	}
}

// TestStopLetsAttemptsEnd: a dispatcher that stops lets attempts end, writes their outcomes and releases its accounts.
func TestStopLetsAttemptsEnd(t *testing.T) {
	t.Parallel()
	arrived, respond := make(chan struct{}, 100), make(chan struct{})
	f, account, r := newPair(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-respond
	})
	f.record(t, account, 20)
	_, stop := f.dispatch(t, nil)
	<-arrived
	time.AfterFunc(50*time.Millisecond, func() { close(respond) })
	stop()
	delivered := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`)
	if delivered == 0 || delivered != r.received() {
		t.Errorf("%d delivered, %d received", delivered, r.received())
	}
	equal(t, 1, f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL`), "released accounts")
	f.dispatch(t, nil)
	storetest.Eventually(t, "all are received", func() bool { return r.received() == 20 })
}

// TestRecordedWhileReleased: an account whose event is recorded between the read of due deliveries and the release of
// the account stays with the process until the event is delivered.
func TestRecordedWhileReleased(t *testing.T) {
	t.Parallel()
	f, account, r := newPair(t, nil)
	f.wake(t, account)
	d := f.dispatcher()
	must(t, d.claim(t.Context()))
	must(t, d.readAccounts(t.Context()))
	reads := d.beginReads(true)
	due, err := d.readDue(t.Context(), reads)
	if must(t, err); len(due) != 0 {
		t.Fatalf("%d deliveries are due", len(due))
	}
	d.endReads(reads, due)
	f.record(t, account, 1)
	must(t, d.release(t.Context()))
	must(t, d.round(t.Context(), t.Context(), false))
	equal(t, 0, f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`),
		"accounts that are released with a pending delivery that no process looks for")
	must(t, d.round(t.Context(), t.Context(), true))
	storetest.Eventually(t, "it is received", func() bool { return r.received() == 1 })
	d.attempts.Wait()
}

// TestWrittenWhileRead: a delivery whose outcome is written during a read, which found it as it was before, is not
// attempted again.
func TestWrittenWhileRead(t *testing.T) {
	t.Parallel()
	f, account, r := newPair(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	id := f.record(t, account, 1)[0]
	h := &hook{sql: readDue}
	d := f.hookedDispatcher(t, h)
	write := false
	h.end = func() {
		if write {
			must(t, d.writeOutcomes(t.Context()))
		}
	}
	for _, write = range []bool{false, true} {
		must(t, d.round(t.Context(), t.Context(), true))
		d.attempts.Wait()
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE attempts = 1`); n != 1 || r.times(id) != 1 {
		t.Errorf("%d deliveries were attempted, the event was received %d times", n, r.times(id))
	}
}

// TestLockedQueues: a dispatcher claims, renews and releases accounts without those whose queues another transaction
// has locked. A dispatcher that stops waits for these.
func TestLockedQueues(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t) // where the dispatcher waits
	f := newFixture(t)
	locked, free := f.NewAccount(t), f.NewAccount(t)
	for _, account := range []store.ID{locked, free} {
		f.endpoint(t, account, attemptedURL)
		f.wake(t, account)
	}
	d := f.dispatcher()
	owned := func(step string, want int) {
		t.Helper()
		n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner = $1`, d.id)
		if n != want || len(d.owned()) != want {
			t.Errorf("%s: %d accounts are owned in the database and %d in memory, want %d", step, n, len(d.owned()), want)
		}
	}
	lock := func() (unlock func()) {
		t.Helper()
		tx := f.begin(t, `SELECT FROM webhook_queues WHERE account_id = $1 FOR NO KEY UPDATE`, locked)
		return func() { must(t, tx.Rollback(t.Context())) }
	}

	unlock := lock()
	must(t, d.claim(t.Context()))
	owned("claim", 1)
	unlock()
	must(t, d.claim(t.Context()))
	owned("second claim", 2)

	unlock = lock()
	before := time.Now()
	for _, a := range d.accounts {
		a.leaseEnd = before
	}
	must(t, d.renew(t.Context()))
	if d.accounts[locked].leaseEnd != before || d.accounts[free].leaseEnd == before {
		t.Error("not the lease of the other account alone was renewed")
	}
	must(t, d.round(t.Context(), t.Context(), false))
	owned("release", 1)
	f.wake(t, free)
	must(t, d.claim(t.Context()))
	owned("third claim", 2)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		d.shutdown(t.Context())
	}()
	storetest.Eventually(t, "the other account is released", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_queues WHERE account_id = $1 AND owner IS NULL`, free) == 1
	})
	unlock()
	<-stopped
	owned("shutdown", 0)
}

package delivery

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/insights/webhooks"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
)

// TestLimitsInFlight: over two processes, at most 4 requests at a time go to an endpoint and 16 to an account.
func TestLimitsInFlight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	var now, most atomic.Int32
	// delayed responds when as many requests as the limit are in flight, and a little later, so that one more would be counted.
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
		eventually(t, "all are received", func() bool { return r.received() == 40 })
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
	eventually(t, "all are received", func() bool { return one.received() == 40 })
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.most != 4 {
		t.Errorf("one endpoint: %d requests at a time", one.most)
	}
}

// TestStop: a dispatcher that stops lets attempts end, writes their outcomes and releases its accounts.
func TestStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	arrived, respond := make(chan struct{}, 100), make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-respond
	})
	f.endpoint(t, account, r.URL)
	f.record(t, account, 20)
	_, stop := f.dispatch(t, nil)
	<-arrived
	time.AfterFunc(50*time.Millisecond, func() { close(respond) })
	stop()
	delivered := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`)
	if delivered == 0 || delivered != r.received() {
		t.Errorf("%d delivered, %d received", delivered, r.received())
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL`); n != 1 {
		t.Error("the account is still owned")
	}
	f.dispatch(t, nil)
	eventually(t, "all are received", func() bool { return r.received() == 20 })
}

// TestRecordedWhileReleased: an account whose event is recorded between the read of due deliveries and the release of the
// account stays with the process until the event is delivered.
func TestRecordedWhileReleased(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, nil)
	f.endpoint(t, account, r.URL)
	f.wake(t, account)
	d := f.dispatcher(DefaultLimits())
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
	if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`); n != 0 {
		t.Error("the account is released with a pending delivery that no process looks for")
	}
	must(t, d.round(t.Context(), t.Context(), true))
	eventually(t, "it is received", func() bool { return r.received() == 1 })
	d.attempts.Wait()
}

// TestWrittenWhileRead: a delivery whose outcome is written during a read, which found it as it was before, is not attempted
// again.
func TestWrittenWhileRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	f.endpoint(t, account, r.URL)
	id := f.record(t, account, 1)[0]
	h := &hook{sql: readDue}
	d := f.hookedDispatcher(t, h)
	write := false
	h.end = func() {
		if write {
			if err := d.writeOutcomes(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for _, write = range []bool{false, true} {
		if err := d.round(t.Context(), t.Context(), true); err != nil {
			t.Fatal(err)
		}
		d.attempts.Wait()
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE attempts = 1`); n != 1 || r.times(id) != 1 {
		t.Errorf("%d deliveries were attempted, the event was received %d times", n, r.times(id))
	}
}

// TestNoLostWakeups: two dispatchers deliver every event soon, in any interleaving of records and releases.
func TestNoLostWakeups(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newReceiver(t, nil)
	f.dispatch(t, nil)
	f.dispatch(t, nil)
	var recorders sync.WaitGroup
	const accounts, each = 4, 20
	for range accounts {
		account := f.NewAccount(t)
		f.endpoint(t, account, r.URL)
		recorders.Go(func() {
			for range each {
				id := f.record(t, account, 1)[0]
				switch rand.N(3) { // before it is delivered, when it is, or when the account is released
				case 1:
					eventually(t, "it is received", func() bool { return r.times(id) > 0 })
				case 2:
					eventually(t, "the account is released", func() bool {
						return f.Count(t, `SELECT count(*) FROM webhook_queues WHERE account_id = $1 AND owner IS NULL AND wake_at = 'infinity'`, account) == 1
					})
				}
			}
		})
	}
	recorders.Wait()
	eventually(t, "all are received", func() bool { return r.received() == accounts*each })
	eventually(t, "all are delivered", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered'`) == 0
	})
	eventually(t, "all accounts are released", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`) == accounts
	})
	violations, err := store.Verify(t.Context(), f.Pool, webhooks.Invariants())
	if err != nil || len(violations) > 0 {
		t.Errorf("%+v, %v", violations, err)
	}
}

// TestClaimsDoNotWait: a claim leaves out accounts that another transaction has locked.
func TestClaimsDoNotWait(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t)
	f := newFixture(t)
	locked, free := f.NewAccount(t), f.NewAccount(t)
	for _, account := range []store.ID{locked, free} {
		f.Exec(t, `INSERT INTO webhook_queues (account_id, wake_at) VALUES ($1, now())`, account)
	}
	tx, err := f.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `UPDATE webhook_queues SET version = version + 1 WHERE account_id = $1`, locked); err != nil {
		t.Fatal(err)
	}
	claimed, err := column[store.ID](t.Context(), f.Pool, claimAccounts, []store.ID{locked, free}, store.NewID(), 60.0)
	if err != nil || !slices.Equal(claimed, []store.ID{free}) {
		t.Errorf("claimed %v, %v, want %v", claimed, err, free)
	}
}

package delivery

import (
	"context"
	"net/http"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

// TestProcessThatEnded: what a process owned is delivered by another when the lease has ended.
func TestProcessThatEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, nil)
	f.endpoint(t, account, r.URL)
	f.record(t, account, 3)
	began := time.Now()
	f.Exec(t, `UPDATE webhook_queues SET owner = $1, wake_at = now() + interval '1 second'`, store.NewID())
	f.dispatch(t, nil)
	f.record(t, account, 1) // does not end the lease
	storetest.Eventually(t, "all are received", func() bool { return r.received() == 4 })
	if time.Since(began) < time.Second {
		t.Error("the lease was ignored")
	}
	if leaseTime+renewEvery > time.Minute {
		t.Error("a lease may outlast its process by a minute")
	}
}

// TestLease: no attempt is started near the end of a lease, after which another process may claim the account. A renewal
// extends the lease. A process drops an account that another one has claimed.
func TestLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, nil)
	f.endpoint(t, account, r.URL)
	f.record(t, account, 1)
	d, other := f.dispatcher(), f.dispatcher()
	must(t, d.claim(t.Context()))
	d.accounts[account].leaseEnd = time.Now().Add(attemptTimeout + drainTimeout)
	must(t, d.round(t.Context(), t.Context(), false))
	if n := d.Stats().InFlight; n != 0 {
		t.Fatalf("%d attempts were started that the lease may not cover", n)
	}

	f.Exec(t, `UPDATE webhook_queues SET wake_at = now()`)
	must(t, d.renew(t.Context()))
	must(t, other.claim(t.Context()))
	if n := other.Stats().Accounts; n != 0 {
		t.Error("another process claimed the account after its lease was renewed")
	}
	storetest.Eventually(t, "the event is received", func() bool {
		must(t, d.round(t.Context(), t.Context(), false))
		return r.received() == 1
	})
	d.attempts.Wait()

	f.Exec(t, `UPDATE webhook_queues SET wake_at = now()`)
	must(t, other.claim(t.Context()))
	must(t, d.renew(t.Context()))
	if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner = $1`, other.id); n != 1 {
		t.Error("the process that claimed the account last does not own it")
	}
	storetest.Eventually(t, "the account is dropped", func() bool {
		must(t, d.readAccounts(t.Context()))
		return d.Stats().Accounts == 0
	})
}

// TestLeasesAreRenewed: a dispatcher renews the lease of an account in which an attempt takes long.
func TestLeasesAreRenewed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	arrived, respond := make(chan struct{}, 1), make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-respond
	})
	f.endpoint(t, account, r.URL)
	f.record(t, account, 1)
	f.dispatch(t, func(d *Dispatcher) { d.sender.timeout, d.renewEvery = 2*waitTimeout, 100*time.Millisecond })
	t.Cleanup(func() { close(respond) })
	<-arrived
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() + interval '1 hour'`) // only a renewal changes it
	storetest.Eventually(t, "the lease is renewed", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_queues WHERE wake_at < now() + interval '1 minute'`) == 1
	})
}

// TestStopWhileClaiming: a dispatcher that is stopped while it claims accounts releases them. Otherwise no process would deliver
// their events until the leases end.
func TestStopWhileClaiming(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	f.endpoint(t, account, newReceiver(t, nil).URL)
	f.record(t, account, 1)
	stopping, stop := context.WithCancel(t.Context())
	h := &hook{sql: claimAccounts}
	d := f.hookedDispatcher(t, h)
	claimed := false
	h.start = func(ctx context.Context) context.Context {
		stop()
		claimed = ctx.Err() == nil
		return ctx
	}
	d.Run(stopping)
	if !claimed {
		t.Error("the claim was canceled: if the database has executed it, the process does not know that it owns the account")
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL`); n != 1 {
		t.Error("the account is still owned")
	}
}

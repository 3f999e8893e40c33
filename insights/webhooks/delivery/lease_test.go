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
	f, account, r := newPair(t, nil)
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
	if attemptTimeout+2*drainTimeout+finalCommit > leaseTime-renewEvery {
		t.Error("a process that is asked to end, and renews no lease any more, may lose accounts before their outcomes are written")
	}
}

// TestNoAttemptNearTheEndOfALease: no attempt is started near the end of a lease, after which another process may claim the account.
func TestNoAttemptNearTheEndOfALease(t *testing.T) {
	t.Parallel()
	f, account, r := newPair(t, nil)
	f.record(t, account, 1)
	d := f.dispatcher()
	must(t, d.claim(t.Context()))
	d.accounts[account].leaseEnd = time.Now().Add(attemptTimeout + drainTimeout)
	must(t, d.round(t.Context(), t.Context(), false))
	if n := d.Stats().InFlight; n != 0 {
		t.Fatalf("%d attempts were started that the lease may not cover", n)
	}
	must(t, d.renew(t.Context()))
	storetest.Eventually(t, "the event is received", func() bool { // when its delivery is read again
		d.deliver(t)
		return r.received() == 1
	})
}

// TestLeasesAreRenewed: a dispatcher renews the lease of an account in which an attempt takes long.
func TestLeasesAreRenewed(t *testing.T) {
	t.Parallel()
	arrived, respond := make(chan struct{}, 1), make(chan struct{})
	f, account, _ := newPair(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-respond
	})
	f.record(t, account, 1)
	f.dispatch(t, func(d *Dispatcher) { d.sender.timeout, d.renewEvery = 2*waitTimeout, 100*time.Millisecond })
	t.Cleanup(func() { close(respond) })
	<-arrived
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() + interval '1 hour'`) // only a renewal changes it
	storetest.Eventually(t, "the lease is renewed", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_queues WHERE wake_at < now() + interval '1 minute'`) == 1
	})
}

// TestStopWhileClaiming: a dispatcher that is stopped while it claims accounts releases them. Otherwise no process
// would deliver their events until the leases end.
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
	equal(t, 1, f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner IS NULL`), "released accounts")
}

// TestClaimAgain: a process that claims an account again after its lease has ended knows what is in flight, and starts
// other attempts. It does not release the account while they are in flight, also where it yields.
func TestClaimAgain(t *testing.T) {
	t.Parallel()
	f, account, r, respond := newHangingPair(t)
	f.record(t, account, 1)
	d := f.dispatcher()
	must(t, d.round(t.Context(), t.Context(), true))
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now()`)
	d.accounts[account].leaseEnd = time.Now()
	f.record(t, account, 1)
	must(t, d.round(t.Context(), t.Context(), true))
	equal(t, 2, d.Stats().InFlight, "attempts are in flight")
	d.accounts[account].yielding = true
	must(t, d.release(t.Context()))
	if len(d.owned()) != 1 {
		t.Error("the account is released with attempts in flight")
	}
	close(respond)
	d.attempts.Wait()
	equal(t, 2, r.received(), "events were received")
}

// TestClaimWhileBusy: a process with as many requests in flight as it may have claims no accounts, which other
// processes may serve, and none of its own yields to them.
func TestClaimWhileBusy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, respond := newHangingReceiver(t)
	d := f.dispatcher()
	d.turns.limits.inFlight = 1
	for range 2 {
		account := f.NewAccount(t)
		f.endpoint(t, account, r.URL)
		f.record(t, account, 1)
		must(t, d.round(t.Context(), t.Context(), true))
		for _, a := range d.accounts {
			a.claimedAt = time.Now().Add(-2 * yieldAfter)
		}
	}
	for _, a := range d.accounts {
		if len(d.accounts) != 1 || a.yielding {
			t.Errorf("%d accounts are owned; one yields: %t", len(d.accounts), a.yielding)
		}
	}
	close(respond)
	d.attempts.Wait()
	must(t, d.claim(t.Context()))
	equal(t, 2, len(d.accounts), "accounts are owned")
}

// TestClaimedByAnother: a process does not release an account that another one has claimed, and attempts none of its
// deliveries.
func TestClaimedByAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, at string // the statement before which another process claims the account
		events   int
		act      func(context.Context, *Dispatcher) error
	}{
		{"an idle account", releaseAccounts, 0, func(ctx context.Context, d *Dispatcher) error { return d.round(ctx, ctx, true) }},
		{"a yielding account", yieldAccounts, 0, func(ctx context.Context, d *Dispatcher) error {
			for _, a := range d.accounts {
				a.yielding = true
			}
			return d.release(ctx)
		}},
		{"renewal", renewAccounts, 1, func(ctx context.Context, d *Dispatcher) error { return d.renew(ctx) }},
		{"deliveries in memory", readAccounts, 1, func(ctx context.Context, d *Dispatcher) error {
			d.stopping = true
			if err := d.round(ctx, ctx, true); err != nil {
				return err
			}
			d.stopping = false
			d.reread()
			return d.round(ctx, ctx, true)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			account, other := f.NewAccount(t), store.NewID()
			r := newReceiver(t, nil)
			f.endpoint(t, account, r.URL)
			f.wake(t, account)
			f.record(t, account, test.events)
			h := &hook{sql: test.at}
			d := f.hookedDispatcher(t, h)
			must(t, d.claim(t.Context()))
			must(t, d.readAccounts(t.Context()))
			h.start = func(ctx context.Context) context.Context {
				f.Exec(t, `UPDATE webhook_queues SET owner = $1, wake_at = now() + interval '1 minute'`, other)
				return ctx
			}
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			must(t, test.act(ctx, d))
			d.attempts.Wait()
			equal(t, 1, f.Count(t, `SELECT count(*) FROM webhook_queues WHERE owner = $1`, other),
				"accounts of the other process")
			equal(t, 0, r.received(), "events were received")
		})
	}
}

// TestReleasedDuringRenewal: an account may be released while its lease is renewed.
func TestReleasedDuringRenewal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wake(t, f.NewAccount(t))
	h := &hook{sql: renewAccounts}
	d := f.hookedDispatcher(t, h)
	must(t, d.claim(t.Context()))
	h.end = func() { must(t, d.yield(t.Context(), d.owned())) }
	must(t, d.renew(t.Context()))
	equal(t, 0, len(d.owned()), "accounts are owned")
}

// TestClaimTwice: of two processes that find the same account due, one claims it.
func TestClaimTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wake(t, f.NewAccount(t))
	first := f.dispatcher()
	second := f.hookedDispatcher(t, &hook{sql: dueAccounts, end: func() { must(t, first.claim(t.Context())) }})
	must(t, second.claim(t.Context()))
	if len(first.owned()) != 1 || len(second.owned()) != 0 {
		t.Errorf("the first process owns %d accounts, the second %d; want 1 and 0", len(first.owned()), len(second.owned()))
	}
}

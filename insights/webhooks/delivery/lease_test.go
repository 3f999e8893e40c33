package delivery

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"
)

// TestProcessThatEnded: what a process owned is delivered by another when the lease has ended.
func TestProcessThatEnded(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.record(3)
	f.Exec(t, `UPDATE webhook_queues SET owner = $1, wake_at = now() + interval '1 minute'`, store.NewID())
	c.record(1) // does not end the lease
	f.poll()
	f.owned(0)
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now()`)
	f.deliver()
	equal(t, 4, r.received(), "requests")
	f.Exec(t, `UPDATE webhook_queues SET owner = $1, wake_at = now() + interval '1 hour'`, store.NewID()) // the clock was ahead
	c.record(1)
	f.deliver()
	equal(t, 5, r.received(), "requests")
	if leaseTime+renewEvery > time.Minute {
		t.Error("a lease may outlast its process by a minute")
	}
	if attemptTimeout+2*drainTimeout+finalCommit > leaseTime-renewEvery {
		t.Error("a process that is asked to end may lose accounts before their outcomes are written")
	}
}

// TestClaimWithoutAnAnswer: a claim that the database does not answer ends with the lease, so that rounds go on.
func TestClaimWithoutAnAnswer(t *testing.T) {
	f := newFixture(t)
	f.d.leaseTime = 100 * time.Millisecond
	config := f.Pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &unanswered{conn}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	f.d.cfg.Pool = pool
	if err := f.d.round(t.Context(), true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// An unanswered connection loses the queries that are sent.
type unanswered struct{ net.Conn }

func (c *unanswered) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("webhook_queues")) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestNoAttemptNearTheEndOfALease: no attempt is started near the end of a lease, after which another process may claim
// the account.
func TestNoAttemptNearTheEndOfALease(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.record(1)
	f.d.turns.limits.readyAge = maxReadyAge
	must(t, f.d.claim(t.Context()))
	f.d.accounts[c.account].leaseEnd = time.Now().Add(attemptTimeout + drainTimeout)
	f.round()
	equal(t, 0, f.d.Stats().InFlight, "attempts in flight that the lease may not cover")
	must(t, f.d.renew(t.Context()))
	storetest.Eventually(t, "the event is received", func() bool { // when its delivery is read again
		f.deliver()
		return r.received() == 1
	})
}

// TestLeasesAreRenewed: a task renews the leases of the accounts that a dispatcher owns.
func TestLeasesAreRenewed(t *testing.T) {
	f := newFixture(t)
	f.customer(attemptedURL).wake()
	must(t, f.d.claim(t.Context()))
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() + interval '1 hour'`)
	renew := f.task("renew_webhook_leases")
	equal(t, 10*time.Second, renew.Every)
	f.d.leaseTime = leaseTime
	before := time.Now()
	must(t, renew.Run(t.Context()))
	f.rows(1, `webhook_queues WHERE wake_at BETWEEN $1::timestamptz + interval '30 s' AND now() + interval '1 minute'`, before)
}

// TestOutcomesAreWritten: outcomes are written when an attempt ends and, if they could not be written, at an interval.
func TestOutcomesAreWritten(t *testing.T) {
	f, c, _ := newPair(t, 204)
	for _, failed := range []bool{false, true} {
		c.record(1)
		f.poll()
		f.d.attempts.Wait()
		write := f.task("write_webhook_outcomes")
		if failed {
			<-f.d.commit
		} else {
			write.Every = time.Hour
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { task.NewRunner(f.d.cfg.Log, []task.Task{write}).Run(ctx) })
		storetest.Eventually(t, "the outcome is written", func() bool {
			return f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'`) == 0
		})
		stop()
		running.Wait()
	}
}

// TestStopLetsAttemptsEnd: a dispatcher that stops lets attempts end, writes the outcome of each though others are in
// flight, and releases its accounts.
func TestStopLetsAttemptsEnd(t *testing.T) {
	f, c, r := newPair(t, 204)
	release := r.hold(t)
	slow := newReceiver(t, 500)
	releaseSlow := slow.hold(t)
	f.customer(slow.URL).record(1)
	c.record(20)
	stop := f.run()
	storetest.Eventually(t, "requests have arrived", func() bool { return r.received() > 0 && slow.received() > 0 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	storetest.Eventually(t, "the dispatcher stops", func() bool {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		return f.d.stopping
	})
	release()
	storetest.Eventually(t, "an outcome is written", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`) > 0
	})
	releaseSlow()
	<-stopped
	if r.received() == 20 {
		t.Error("all events were received")
	}
	f.rows(r.received(), `webhook_deliveries WHERE status = 'delivered'`)
	f.rows(2, `webhook_queues WHERE owner IS NULL AND wake_at <= now()`)
}

// TestStopWhileClaiming: a dispatcher that is stopped while it claims accounts releases them. Otherwise no process
// would deliver their events until the leases end.
func TestStopWhileClaiming(t *testing.T) {
	f, c, _ := newPair(t, 204)
	c.record(1)
	stopping, stop := context.WithCancel(t.Context())
	claimed := false
	f.hook(&hook{sql: claimAccounts}).start = func(ctx context.Context) context.Context {
		stop()
		claimed = ctx.Err() == nil
		return ctx
	}
	f.runUntil(stopping, f.d.Tasks())
	equal(t, true, claimed, "the claim is not canceled: the database might have executed it, unknown to the process")
	f.rows(1, `webhook_queues WHERE owner IS NULL`)
}

// TestClaimAgain: a process that claims an account again after its lease has ended knows what is in flight, and starts
// other attempts. It does not release the account while they are in flight, also where it yields.
func TestClaimAgain(t *testing.T) {
	f, c, r := newPair(t, 204)
	release := r.hold(t)
	c.record(1)
	f.poll()
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now()`)
	f.d.accounts[c.account].leaseEnd = time.Now()
	c.record(1)
	f.poll()
	equal(t, 2, f.d.Stats().InFlight, "attempts in flight")
	f.d.accounts[c.account].yielding = true
	must(t, f.d.release(t.Context()))
	f.owned(1)
	release()
	f.d.attempts.Wait()
	equal(t, 2, r.received(), "requests")
}

// TestClaimWhileBusy: a process with as many requests in flight as it may have claims no accounts, which other
// processes may serve, and none of its own yields to them.
func TestClaimWhileBusy(t *testing.T) {
	f, c, r := newPair(t, 204)
	release := r.hold(t)
	f.d.turns.limits.inFlight = 1
	c.record(1)
	f.poll()
	f.age()
	f.customer(r.URL).record(1)
	f.poll()
	f.owned(1)
	equal(t, false, f.d.accounts[c.account].yielding, "the account yields")
	release()
	f.d.attempts.Wait()
	must(t, f.d.claim(t.Context()))
	f.owned(2)
}

// TestClaimedByAnother: a process does not release an account that another one has claimed, and attempts none of its
// deliveries.
func TestClaimedByAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, at string // the statement before which another process claims the account
		events   int
		act      func(*fixture)
	}{
		{"an idle account", releaseAccounts, 0, (*fixture).poll},
		{"a yielding account", yieldAccounts, 0, func(f *fixture) {
			for _, a := range f.d.accounts {
				a.yielding = true
			}
			must(f.t, f.d.release(f.t.Context()))
		}},
		{"renewal", renewAccounts, 1, func(f *fixture) { must(f.t, f.d.renew(f.t.Context())) }},
		{"deliveries in memory", readAccounts, 1, func(f *fixture) {
			f.d.stopping = true
			f.poll()
			f.d.stopping = false
			f.reread()
			f.poll()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, c, r := newPair(t, 204)
			c.wake()
			c.record(test.events)
			must(t, f.d.claim(t.Context()))
			must(t, f.d.readAccounts(t.Context()))
			other := store.NewID()
			f.hook(before(test.at, func() {
				f.Exec(t, `UPDATE webhook_queues SET owner = $1, wake_at = now() + interval '1 minute'`, other)
			}))
			test.act(f)
			f.d.attempts.Wait()
			f.rows(1, `webhook_queues WHERE owner = $1`, other)
			equal(t, 0, r.received(), "requests")
		})
	}
}

// TestReleasedDuringRenewal: an account may be released while its lease is renewed.
func TestReleasedDuringRenewal(t *testing.T) {
	f := newFixture(t)
	f.customer(attemptedURL).wake()
	must(t, f.d.claim(t.Context()))
	f.hook(&hook{sql: renewAccounts}).end = func() { must(t, f.d.yield(t.Context(), f.d.owned())) }
	must(t, f.d.renew(t.Context()))
	f.owned(0)
}

// TestClaimTwice: of two processes that find the same account due, one claims it.
func TestClaimTwice(t *testing.T) {
	f := newFixture(t)
	f.customer(attemptedURL).wake()
	first := f.dispatcher()
	f.hook(&hook{sql: dueAccounts}).end = func() { must(t, first.claim(t.Context())) }
	must(t, f.d.claim(t.Context()))
	f.owned(0)
	equal(t, 1, len(first.owned()), "accounts that the first process owns")
}

// TestLockedQueues: a dispatcher claims, renews and releases accounts without those whose queues another transaction
// has locked. A dispatcher that stops waits for these.
func TestLockedQueues(t *testing.T) {
	webhookstest.SkipOnCitus(t) // where the dispatcher waits
	f := newFixture(t)
	locked, free := f.customer(attemptedURL), f.customer(attemptedURL)
	locked.wake()
	free.wake()
	lock := func() (unlock func()) {
		tx := storetest.Begin(t, f.Pool, `SELECT FROM webhook_queues WHERE account_id = $1 FOR NO KEY UPDATE`, locked.account)
		return func() { must(t, tx.Rollback(t.Context())) }
	}
	claim := func(want int) {
		t.Helper()
		must(t, f.d.claim(t.Context()))
		f.owned(want)
	}

	unlock := lock()
	claim(1)
	unlock()
	claim(2)

	unlock = lock()
	before := time.Now()
	for _, a := range f.d.accounts {
		a.leaseEnd = before
	}
	must(t, f.d.renew(t.Context()))
	equal(t, true, f.d.accounts[locked.account].leaseEnd.Equal(before), "the lease of the locked account is not renewed")
	equal(t, true, f.d.accounts[free.account].leaseEnd.After(before), "the lease of the other account is renewed")
	f.round()
	f.owned(1)
	free.wake()
	claim(2)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		f.d.releaseAll(t.Context())
	}()
	storetest.Eventually(t, "the other account is released", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_queues WHERE account_id = $1 AND owner IS NULL`, free.account) == 1
	})
	unlock()
	<-stopped
	f.owned(0)
}

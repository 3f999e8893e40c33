package delivery

import (
	"sync"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

// TestProcessThatEnded: what a process owned is delivered by another when the lease has ended. A renewal extends the
// leases of the accounts that a dispatcher owns.
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

	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() + interval '1 hour'`)
	f.d.leaseTime = leaseTime
	before := time.Now()
	must(t, f.d.renew(t.Context()))
	f.Rows(t, 1, `webhook_queues WHERE wake_at BETWEEN $1::timestamptz + interval '30 s' AND now() + interval '1 minute'`, before)
	if leaseTime+renewEvery > time.Minute {
		t.Error("a lease may outlast its process by a minute")
	}
	if attemptTimeout+2*drainTimeout+finalCommit > leaseTime-renewEvery {
		t.Error("a process that is asked to end may lose accounts before their outcomes are written")
	}
}

// TestStopLetsAttemptsEnd: a dispatcher that stops lets attempts end, writes the outcome of each though others are in
// flight, and releases its accounts.
func TestStopLetsAttemptsEnd(t *testing.T) {
	f, c, r := newPair(t, 204)
	release := r.hold(t)
	slow := newReceiver(t, 204)
	releaseSlow := slow.hold(t)
	f.customer(slow.URL).record(1)
	c.record(20)
	f.poll()
	var stopped sync.WaitGroup
	stopped.Go(f.d.End)
	storetest.Eventually(t, "the dispatcher stops", func() bool {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		return f.d.stopping
	})
	release()
	storetest.Eventually(t, "the outcomes of the fast attempts are written", func() bool {
		return f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'`) == 4
	})
	releaseSlow()
	stopped.Wait()
	f.Rows(t, 4+1, `webhook_deliveries WHERE status = 'delivered'`) // those that had begun
	f.Rows(t, 2, `webhook_queues WHERE owner IS NULL AND wake_at <= now()`)
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
			f.deliver()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, c, r := newPair(t, 204)
			c.wake()
			c.record(test.events)
			must(t, f.d.claim(t.Context()))
			must(t, f.d.readAccounts(t.Context()))
			other := store.NewID()
			f.before(test.at, func() {
				f.Exec(t, `UPDATE webhook_queues SET owner = $1, wake_at = now() + interval '1 minute'`, other)
			})
			test.act(f)
			f.d.attempts.Wait()
			f.Rows(t, 1, `webhook_queues WHERE owner = $1`, other)
			equal(t, 0, r.received(), "requests")
		})
	}
}

// TestClaimTwice: of two processes that find the same account due, one claims it.
func TestClaimTwice(t *testing.T) {
	f := newFixture(t)
	f.customer(attemptedURL).wake()
	first := f.dispatcher()
	f.before(claimAccounts, func() { must(t, first.claim(t.Context())) })
	must(t, f.d.claim(t.Context()))
	f.owned(0)
	equal(t, 1, len(first.owned()), "accounts that the first process owns")
}

// TestCommittedLateBeforeRelease: an account is not released if a delivery was committed before the cursor of the last
// read.
func TestCommittedLateBeforeRelease(t *testing.T) {
	f, c, _ := newPair(t, 204)
	c.record(minFetch + 1)
	f.deliver() // all of them, of which the last one is the cursor
	late := c.record(1)[0]
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE event_id = $1`, late)
	f.deliver()
	f.deliver()
	f.Rows(t, 1, `webhook_deliveries WHERE event_id = $1 AND status = 'delivered'`, late)
}

// TestReleasedUntilNextIsDue: an account in which many deliveries wait for a retry is released until the first of them
// is due.
func TestReleasedUntilNextIsDue(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	f.endpoint(c.account, attemptedURL+"2")
	c.record(2 * minFetch)
	for _, order := range []string{"ASC", "DESC"} { // of the endpoints
		f.Exec(t, `
UPDATE webhook_deliveries d SET next_attempt_at = to_timestamp($2 + n * 3600)
FROM (SELECT event_id, endpoint_id, row_number() OVER (ORDER BY endpoint_id `+order+`, event_id) AS n
  FROM webhook_deliveries WHERE account_id = $1) o
WHERE d.account_id = $1 AND d.event_id = o.event_id AND d.endpoint_id = o.endpoint_id`,
			c.account, float64(time.Now().Unix()))
		c.wake()
		f.poll()
		f.Rows(t, 1, `webhook_queues WHERE owner IS NULL AND wake_at = (SELECT min(next_attempt_at) FROM webhook_deliveries)`)
	}
}

// TestRecordedWhileReleased: an account whose event is recorded between the read of due deliveries and the release of
// the account stays with the process until the event is delivered.
func TestRecordedWhileReleased(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.wake()
	f.before(releaseAccounts, sync.OnceFunc(func() { c.record(1) }))
	f.poll()
	f.Rows(t, 0, `webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`)
	must(t, f.d.round(t.Context(), false))
	f.poll()
	f.d.attempts.Wait()
	equal(t, 1, r.received(), "requests")
}

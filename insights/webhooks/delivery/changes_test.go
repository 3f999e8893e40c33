package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

// TestGoneAfterChangeOfURL: after a 410 from the URL before a change, what is pending is delivered to the new URL.
func TestGoneAfterChangeOfURL(t *testing.T) {
	f, c, old := newPair(t, 410)
	release, next := old.hold(t), newReceiver(t, 204)
	c.record(6)
	f.poll() // starts 4 attempts
	c.update(webhooks.Change{URL: &next.URL})
	f.reread()
	must(t, f.d.readAccounts(t.Context()))
	release()
	f.d.attempts.Wait()
	equal(t, false, f.d.accounts[c.account].endpoints[0].gone, "the endpoint counts as gone")
	must(t, f.d.writeOutcomes(t.Context()))
	f.deliver()
	equal(t, 2, next.received(), "requests to the new URL")
}

// TestGoneBeforeItIsWritten: after a 410 no attempt starts, even if the endpoint is read again before the outcome is
// written. Its other deliveries wait.
func TestGoneBeforeItIsWritten(t *testing.T) {
	f, c, r := newPair(t, 410)
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now()`) // so that one attempt starts at a time
	c.record(3)
	for range 3 {
		f.reread()
		f.poll()
		f.d.attempts.Wait()
	}
	must(t, f.d.writeOutcomes(t.Context()))
	f.rows(2, `webhook_deliveries WHERE status = 'pending' AND attempts = 0`)
	equal(t, 1, r.received(), "requests")
	f.deliver()
	f.owned(0)
}

// TestGoneWhileRead: deliveries that were being read when the endpoint responded with 410 are not attempted.
func TestGoneWhileRead(t *testing.T) {
	f, c, r := newPair(t, 410)
	release := r.hold(t)
	c.record(20)
	h := f.hook(&hook{sql: readDue})
	f.poll()
	h.end = func() {
		release()
		f.d.attempts.Wait()
	}
	f.poll()
	f.d.attempts.Wait()
	equal(t, 4, r.received(), "requests")
}

// TestEnabledAfterGone: an endpoint that was disabled because of a 410, and enabled before the process has read it
// again, gets events.
func TestEnabledAfterGone(t *testing.T) {
	f, c, r := newPair(t, 410)
	for range 2 {
		c.record(1)
		f.deliver()
		c.update(webhooks.Change{Enabled: new(true)})
		r.status.Store(200)
	}
	equal(t, 2, r.received(), "requests")
}

// TestEnabledWhileInFlight: where an endpoint is disabled and enabled during an attempt, its other deliveries are
// attempted, and this one is not attempted again.
func TestEnabledWhileInFlight(t *testing.T) {
	f, c, r := newPair(t, 204)
	release := r.hold(t)
	c.record(1)
	f.poll()
	for _, enabled := range []bool{false, true} {
		c.update(webhooks.Change{Enabled: &enabled})
		f.reread()
		must(t, f.d.readAccounts(t.Context()))
	}
	c.record(1)
	f.poll()
	equal(t, 2, f.d.Stats().InFlight, "attempts in flight")
	release()
	f.d.attempts.Wait()
	equal(t, 2, r.received(), "requests")
}

// TestNoLongerEnabled: deliveries in memory to an endpoint that is disabled or deleted are not attempted, and its
// account is released. They are attempted when a disabled endpoint is enabled.
func TestNoLongerEnabled(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t, 204)
	var c *customer
	for i, stop := range []func(){
		func() { c.delete() },
		func() { c.update(webhooks.Change{Enabled: new(false)}) },
	} {
		c = f.customer(fmt.Sprint(r.URL, "/", i))
		c.record(1)
		f.d.stopping = true // no attempt starts
		f.deliver()
		f.d.stopping = false
		stop()
		f.deliver()
		f.owned(0)
	}
	equal(t, 0, r.received(), "requests while no endpoint is enabled")
	c.update(webhooks.Change{Enabled: new(true)})
	f.deliver()
	equal(t, 1, r.received(), "requests after the endpoint was enabled")
}

// TestChangesHoldForTheNextEvent: an event that is recorded after an endpoint was changed is sent as the change says,
// even if the process read the endpoint just before. It is not sent to an endpoint that was deleted meanwhile.
func TestChangesHoldForTheNextEvent(t *testing.T) {
	f, c, old := newPair(t, 204)
	next := newReceiver(t, 204)
	h := f.hook(&hook{sql: readDue})
	for _, change := range []func(){
		func() {},
		func() { c.update(webhooks.Change{URL: &next.URL}) },
		func() { h.end = c.delete },
	} {
		change()
		c.record(1)
		f.poll()
		f.end()
	}
	equal(t, []int{1, 1}, []int{old.received(), next.received()}, "requests to the old and to the new URL")
}

// TestChangesHoldForPending: a changed URL and a rotated secret hold for what is pending.
func TestChangesHoldForPending(t *testing.T) {
	f, c, old := newPair(t, 500)
	c.record(3)
	f.deliver()
	f.owned(1)
	next := newReceiver(t, 204)
	c.update(webhooks.Change{URL: &next.URL})
	receivers := []*Receiver{c.rotate(), c.rotate()}
	c.due()
	f.deliver()
	f.Exec(t, `UPDATE webhook_endpoints SET previous_until = now()`)
	c.record(1)
	f.deliver()
	equal(t, []int{3, 4}, []int{old.received(), next.received()}, "requests to the old and to the new URL")
	for i, r := range next.requests {
		if i == 3 {
			receivers = receivers[1:]
		}
		equal(t, len(receivers), len(strings.Fields(r.header.Get("webhook-signature"))), "signatures")
		for _, receiver := range receivers {
			must(t, receiver.Verify(r.header, r.body, time.Now()))
		}
	}
}

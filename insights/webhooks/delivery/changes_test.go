package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

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
		func() { h.after = c.delete },
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

package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

// TestNoLongerEnabled: deliveries in memory to an endpoint that is disabled or deleted are not attempted, and its
// account is released. They are attempted when a disabled endpoint is enabled, also one that was disabled by a 410.
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
	r.status.Store(410)
	for want := range 2 {
		c.update(webhooks.Change{Enabled: new(true)}) // the second time, before the process has read that the endpoint is gone
		c.record(want)
		f.deliver()
		equal(t, want+1, r.received(), "requests after the endpoint was enabled")
	}
}

// TestChanges: a changed URL and a rotated secret hold for what is pending. They hold for an event that is recorded
// after the change, even if the process read the endpoint just before. It is not sent to an endpoint that was deleted
// meanwhile.
func TestChanges(t *testing.T) {
	f, c, old := newPair(t, 500)
	c.record(3)
	f.deliver()
	f.owned(1)
	next := newReceiver(t, 204)
	c.update(webhooks.Change{URL: &next.URL})
	receivers := []*Receiver{c.rotate(), c.rotate()}
	f.Rows(t, 1, `webhook_endpoints WHERE previous_until = updated_at + interval '24 hours'`)
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

	for _, change := range []func(){
		func() { c.update(webhooks.Change{URL: &old.URL}) },
		func() { f.before(readEvents, c.delete) },
	} {
		change()
		c.record(1)
		f.poll() // which does not read the endpoint before the event
		f.end()
	}
	equal(t, []int{4, 4}, []int{old.received(), next.received()}, "requests, after the URL was changed again, and the endpoint deleted")
}

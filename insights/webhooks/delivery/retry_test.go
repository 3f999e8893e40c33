package delivery

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

// TestRetriesFollowTheSchedule: retries follow the schedule until the last, which fails the delivery. Those of deliveries that failed
// together are spread over 20 % before and after the time of the schedule.
func TestRetriesFollowTheSchedule(t *testing.T) {
	t.Parallel()
	wants := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, want := range wants {
		var delays []time.Duration
		for range 100 {
			o := newOutcome(&delivery{attempts: int32(i)}, attemptedURL, result{err: webhooks.ErrorTimeout})
			if o.status != "pending" {
				t.Errorf("the delivery is %s after attempt %d", o.status, i+1)
			}
			delays = append(delays, o.delay)
		}
		if least, most := slices.Min(delays), slices.Max(delays); least < want*8/10 || most > want*12/10 ||
			most-least < want/5 {
			t.Errorf("delays after attempt %d are from %v to %v, want %v ± 20 %%", i+1, least, most, want)
		}
	}
	last := newOutcome(&delivery{attempts: int32(len(wants))}, attemptedURL, result{err: webhooks.ErrorTimeout})
	if last.status != "failed" {
		t.Errorf("the delivery is %s after the last attempt", last.status)
	}
}

// TestChangesHoldForTheNextEvent: an event that is recorded after an endpoint was changed is sent as the change says, even
// if the process read the endpoint just before. It is not sent to an endpoint that was deleted meanwhile.
func TestChangesHoldForTheNextEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	old, next := newReceiver(t, nil), newReceiver(t, nil)
	e := f.endpoint(t, account, old.URL)
	h := &hook{sql: readDue}
	d := f.hookedDispatcher(t, h)
	deliver := func() {
		f.record(t, account, 1)
		must(t, d.round(t.Context(), t.Context(), true))
		d.attempts.Wait()
		must(t, d.writeOutcomes(t.Context()))
	}
	deliver()
	_, err := f.Update(t.Context(), account, e.ID, webhooks.Change{URL: &next.URL}, maySendAll)
	must(t, err)
	deliver()
	h.end = func() { must(t, f.Delete(t.Context(), account, e.ID)) }
	deliver()
	equal(t, []int{1, 1}, []int{old.received(), next.received()}, "events at the old and at the new URL")
}

// TestChangesHoldForPending: a changed URL and a rotated secret hold for what is pending.
func TestChangesHoldForPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	old := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	type signed struct {
		header http.Header
		body   []byte
	}
	requests := make(chan signed, 100)
	next := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- signed{r.Header, body}
	})
	e := f.endpoint(t, account, old.URL)
	d := f.dispatcher()
	f.record(t, account, 3)
	d.deliver(t)
	if old.received() != 3 || d.Stats().Accounts != 1 {
		t.Fatalf("%d events were received, %d accounts are owned", old.received(), d.Stats().Accounts)
	}
	var receivers []*Receiver // with the latest secret and with the one before
	for range 2 {
		_, secret, err := f.Rotate(t.Context(), account, e.ID)
		must(t, err)
		receiver, err := NewReceiver(secret)
		must(t, err)
		receivers = append(receivers, receiver)
	}
	verify := func() {
		t.Helper()
		r := <-requests
		equal(t, len(receivers), len(strings.Fields(r.header.Get("webhook-signature"))), "signatures")
		for _, receiver := range receivers {
			must(t, receiver.Verify(r.header, r.body, time.Now()))
		}
	}
	_, err := f.Update(t.Context(), account, e.ID, webhooks.Change{URL: &next.URL}, maySendAll)
	must(t, err)
	f.due(t, account)
	d.deliver(t)
	equal(t, 3, next.received(), "events at the new URL")
	for range 3 {
		verify()
	}
	receivers = receivers[1:]
	f.Exec(t, `UPDATE webhook_endpoints SET previous_until = now()`)
	f.record(t, account, 1)
	d.deliver(t)
	verify()
}

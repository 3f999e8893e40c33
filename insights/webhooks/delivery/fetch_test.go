package delivery

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"aiv/store"
)

// TestDroppedWhileRead: deliveries that are dropped during a read of later ones are read next, before the rest of a backlog.
func TestDroppedWhileRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	respond := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-respond })
	f.endpoint(t, account, r.URL)
	ids := f.record(t, account, 100)
	slices.SortFunc(ids, store.ID.Compare) // the order in which they are due
	h := &hook{sql: readDue}
	d := f.hookedDispatcher(t, h)
	must(t, d.round(t.Context(), t.Context(), true)) // reads 5, of which it starts 4
	h.end = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.turns.dropReady(d.accounts[account].endpoints[0])
	}
	must(t, d.round(t.Context(), t.Context(), true)) // reads the next 5; the fifth of the first 5 is dropped
	h.end = nil
	close(respond)
	d.attempts.Wait()
	must(t, d.writeOutcomes(t.Context()))
	must(t, d.round(t.Context(), t.Context(), true))
	d.attempts.Wait()
	if r.times(ids[4]) != 1 || r.received() == 100 {
		t.Errorf("the dropped delivery was received %d times, %d events were received in all", r.times(ids[4]), r.received())
	}
}

// TestReadOfEventsFails: deliveries whose events could not be read are read next, before the rest of a backlog.
func TestReadOfEventsFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, nil)
	f.endpoint(t, account, r.URL)
	ids := f.record(t, account, 100)
	slices.SortFunc(ids, store.ID.Compare)
	h := &hook{sql: readEvents, start: func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}}
	d := f.hookedDispatcher(t, h)
	if err := d.round(t.Context(), t.Context(), true); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	h.start = nil
	must(t, d.round(t.Context(), t.Context(), true))
	d.attempts.Wait()
	if r.times(ids[0]) != 1 || r.received() == 100 {
		t.Errorf("the first event was received %d times, %d events were received in all", r.times(ids[0]), r.received())
	}
}

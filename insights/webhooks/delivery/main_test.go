package delivery

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture is a database with Webhooks that accept http URLs.
type fixture struct {
	*webhookstest.DB
	*webhooks.Webhooks
	master *webhooks.Master
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	db := webhookstest.New(t)
	master, err := webhooks.OpenMaster(t.Context(), db.Pool, "")
	must(t, err)
	return &fixture{db, webhooks.New(webhooks.Config{Pool: db.Pool, Master: master, AllowPrivate: true, NewID: store.NewID}), master}
}

// endpoint registers an endpoint for all events.
func (f *fixture) endpoint(t testing.TB, account store.ID, url string) *webhooks.Endpoint {
	t.Helper()
	e, _, err := f.Create(t.Context(), account, url, "", []string{webhooks.All})
	must(t, err)
	return e
}

// newPair returns a fixture with an account and the receiver of its only endpoint, which responds by respond, or with 204.
func newPair(t testing.TB, respond http.HandlerFunc) (f *fixture, account store.ID, r *receiver) {
	t.Helper()
	f, r = newFixture(t), newReceiver(t, respond)
	account = f.NewAccount(t)
	f.endpoint(t, account, r.URL)
	return f, account, r
}

// newHangingPair is newPair with a receiver that responds when the channel is closed.
func newHangingPair(t testing.TB) (f *fixture, account store.ID, r *receiver, respond chan struct{}) {
	t.Helper()
	respond = make(chan struct{})
	f, account, r = newPair(t, func(http.ResponseWriter, *http.Request) { <-respond })
	return f, account, r, respond
}

// record records n completed runs of an account and returns the events' ids.
func (f *fixture) record(t testing.TB, account store.ID, n int) []store.ID {
	t.Helper()
	ids, err := f.tryRecord(t, account, n)
	must(t, err)
	return ids
}

func (f *fixture) tryRecord(t testing.TB, account store.ID, n int) (ids []store.ID, err error) {
	t.Helper()
	var causes []events.Cause
	for range n {
		ids = append(ids, store.NewID())
		causes = append(causes, events.Cause{
			AccountID: account, ID: ids[len(ids)-1], Type: events.RunCompleted, SubjectID: store.NewID(), Data: []byte(`{"id":"run"}`),
		})
	}
	return ids, pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error { return webhooks.Record(t.Context(), tx, causes) })
}

// begin executes a statement in a transaction that the test ends.
func (f *fixture) begin(t testing.TB, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), sql, args...)
	must(t, err)
	return tx
}

// dispatcher returns a dispatcher that does not run. A test calls its steps.
func (f *fixture) dispatcher() *Dispatcher {
	return New(Config{Pool: f.Pool, Master: f.master, AllowPrivate: true, InFlight: 1024})
}

// dispatch runs a dispatcher until stop is called or the test ends.
func (f *fixture) dispatch(t testing.TB, change func(*Dispatcher)) (d *Dispatcher, stop func()) {
	t.Helper()
	d = f.dispatcher()
	if change != nil {
		change(d)
	}
	return d, run(t, d)
}

// run runs a dispatcher until stop is called or the test ends.
func run(t testing.TB, d *Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	running.Go(func() { task.NewRunner(d.cfg.Log, d.Tasks()).Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// reread makes the next round read the endpoints of all accounts.
func (d *Dispatcher) reread() {
	for _, a := range d.accounts {
		a.readAt = time.Time{}
	}
}

// deliver reads the endpoints, performs a poll, waits for its attempts and writes their outcomes.
func (d *Dispatcher) deliver(t *testing.T) {
	t.Helper()
	d.reread()
	must(t, d.round(t.Context(), t.Context(), true))
	d.attempts.Wait()
	must(t, d.writeOutcomes(t.Context()))
}

// wake makes an account due, as a transaction that queues a delivery does.
func (f *fixture) wake(t testing.TB, account store.ID) {
	t.Helper()
	f.Exec(t, `
INSERT INTO webhook_queues AS q (account_id, wake_at) VALUES ($1, now())
ON CONFLICT (account_id) DO UPDATE SET version = q.version + 1, wake_at = CASE WHEN q.owner IS NULL THEN excluded.wake_at ELSE q.wake_at END`, account)
}

// due makes all pending deliveries of an account due now.
func (f *fixture) due(t testing.TB, account store.ID) {
	t.Helper()
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1 AND status = 'pending'`, account)
	f.wake(t, account)
}

// deliveryWhen waits until the endpoint's only delivery has a status and was attempted, and returns it.
func (f *fixture) deliveryWhen(t testing.TB, account, endpoint store.ID, status string) (d webhooks.Delivery) {
	t.Helper()
	storetest.Eventually(t, "the delivery is "+status, func() bool {
		all, err := webhooks.Deliveries(t.Context(), f.Pool, account, endpoint, status, store.Page{Limit: 10})
		must(t, err)
		if len(all) == 1 && all[0].Attempts > 0 {
			d = all[0]
			return true
		}
		return false
	})
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal reports a difference between two values, which what describes.
func equal[T any](t testing.TB, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(what...), diff)
	}
}

// waitTimeout is how long a test waits for a condition.
const waitTimeout = storetest.Patience

func maySendAll([]string) error { return nil }

func mayReadAll(string) bool { return true }

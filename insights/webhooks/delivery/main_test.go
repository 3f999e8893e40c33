package delivery

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A fixture is a database with Webhooks that accept http URLs, and a dispatcher that does not run: a test calls its
// steps. The test runs in parallel with others.
type fixture struct {
	*webhookstest.DB
	*webhooks.Webhooks
	t      testing.TB
	master *webhooks.Master
	d      *Dispatcher
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	db := webhookstest.New(t)
	master, err := webhooks.OpenMaster(t.Context(), db.Pool, "")
	must(t, err)
	w := webhooks.New(webhooks.Config{Pool: db.Pool, Master: master, AllowPrivate: true, NewID: store.NewID})
	f := &fixture{DB: db, Webhooks: w, t: t, master: master}
	f.d = f.dispatcher()
	return f
}

// dispatcher returns a Dispatcher that does not depend on the speed of the machine: nothing that a test needs ends in
// the meantime.
func (f *fixture) dispatcher() *Dispatcher {
	d := New(Config{Pool: f.Pool, Master: f.master, AllowPrivate: true, InFlight: 1024, Log: slog.New(slog.DiscardHandler)})
	d.leaseTime, d.finalCommit, d.turns.limits.readyAge = time.Hour, waitTimeout, time.Hour
	dialer := &restrictedDialer{allowPrivate: true, resolver: net.DefaultResolver, timeout: waitTimeout}
	d.sender = newSender(dialer, 1024)
	d.sender.wait()
	return d
}

// newPair returns a fixture with a customer whose endpoint responds with a status.
func newPair(t *testing.T, status int) (f *fixture, c *customer, r *receiver) {
	t.Helper()
	f, r = newFixture(t), newReceiver(t, status)
	return f, f.customer(r.URL), r
}

// poll begins a round as at a tick.
func (f *fixture) poll() {
	f.t.Helper()
	must(f.t, f.d.round(f.t.Context(), true))
}

// end waits for the attempts in flight and writes their outcomes.
func (f *fixture) end() {
	f.t.Helper()
	f.d.attempts.Wait()
	must(f.t, f.d.writeOutcomes(f.t.Context()))
}

// deliver reads the endpoints, polls, waits for the attempts and writes their outcomes.
func (f *fixture) deliver() {
	f.t.Helper()
	for _, a := range f.d.accounts {
		a.readAt = time.Time{}
	}
	f.poll()
	f.end()
}

// owned checks how many accounts the dispatcher owns.
func (f *fixture) owned(want int) {
	f.t.Helper()
	f.Rows(f.t, want, `webhook_queues WHERE owner = $1`, f.d.id)
	equal(f.t, want, len(f.d.owned()), "accounts that are owned, in memory")
}

// A customer is an account with an endpoint for all events.
type customer struct {
	f        *fixture
	account  store.ID
	endpoint *webhooks.Endpoint
}

func (f *fixture) customer(url string) *customer {
	f.t.Helper()
	c := &customer{f: f, account: f.NewAccount(f.t)}
	c.endpoint = f.endpoint(c.account, url)
	return c
}

func (f *fixture) endpoint(account store.ID, url string) *webhooks.Endpoint {
	f.t.Helper()
	e, _, err := f.Create(f.t.Context(), account, url, "", []string{webhooks.All})
	must(f.t, err)
	return e
}

// update changes the endpoint.
func (c *customer) update(change webhooks.Change) {
	c.f.t.Helper()
	_, err := c.f.Update(c.f.t.Context(), c.account, c.endpoint.ID, change, maySendAll)
	must(c.f.t, err)
}

// delete deletes the endpoint.
func (c *customer) delete() {
	c.f.t.Helper()
	must(c.f.t, c.f.Delete(c.f.t.Context(), c.account, c.endpoint.ID))
}

// rotate replaces the secret of the endpoint and returns a receiver with the new one.
func (c *customer) rotate() *Receiver {
	c.f.t.Helper()
	_, secret, err := c.f.Rotate(c.f.t.Context(), c.account, c.endpoint.ID)
	must(c.f.t, err)
	r, err := NewReceiver(secret)
	must(c.f.t, err)
	return r
}

// record records n completed runs and returns the events' ids in the order in which they are due.
func (c *customer) record(n int) (ids []store.ID) {
	c.f.t.Helper()
	var causes []events.Cause
	for range n {
		ids = append(ids, store.NewID())
		causes = append(causes, events.Cause{AccountID: c.account, ID: ids[len(ids)-1], Type: events.RunCompleted,
			SubjectID: store.NewID(), Data: []byte(`{"id":"run"}`)})
	}
	slices.SortFunc(ids, store.ID.Compare)
	ctx := c.f.t.Context()
	must(c.f.t, pgx.BeginFunc(ctx, c.f.Pool, func(tx pgx.Tx) error { return webhooks.Record(ctx, tx, causes) }))
	return ids
}

// wake makes the account due, as a transaction that queues a delivery does.
func (c *customer) wake() {
	c.f.t.Helper()
	c.f.Exec(c.f.t, `
INSERT INTO webhook_queues AS q (account_id, wake_at) VALUES ($1, now()) ON CONFLICT (account_id) DO UPDATE
SET version = q.version + 1, wake_at = CASE WHEN q.owner IS NULL THEN excluded.wake_at ELSE q.wake_at END`, c.account)
}

// due makes all pending deliveries of the account due now.
func (c *customer) due() {
	c.f.t.Helper()
	c.f.Exec(c.f.t, `
UPDATE webhook_deliveries SET next_attempt_at = now() WHERE account_id = $1 AND status = 'pending'`, c.account)
	c.wake()
}

// attempts returns attempts to deliver n new events, in the order in which their outcomes are written.
func (c *customer) attempts(n int) (all []*delivery) {
	c.f.t.Helper()
	e := &endpoint{account: &account{id: c.account}, id: c.endpoint.ID}
	for _, event := range c.record(n) {
		all = append(all, &delivery{endpoint: e, event: event})
	}
	return all
}

// A receiver responds with its status, and keeps the requests that it gets.
type receiver struct {
	*httptest.Server
	status   atomic.Int32
	mu       sync.Mutex
	requests []request
	held     chan struct{} // if it is made: requests are responded to when it is closed
}

type request struct {
	header http.Header
	body   []byte
}

func newReceiver(t testing.TB, status int) *receiver {
	r := new(receiver)
	r.status.Store(int32(status))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.requests = append(r.requests, request{q.Header, body})
		r.mu.Unlock()
		if r.held != nil {
			<-r.held
		}
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(r.Close)
	return r
}

// hold makes a new receiver respond only when release is called or the test ends.
func (r *receiver) hold(t testing.TB) (release func()) {
	r.held = make(chan struct{})
	release = sync.OnceFunc(func() { close(r.held) })
	t.Cleanup(release)
	return release
}

// received returns how many requests were received.
func (r *receiver) received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// before makes the dispatcher call do before it sends a statement that contains sql.
func (f *fixture) before(sql string, do func()) {
	f.t.Helper()
	f.d.cfg.Pool = storetest.WithTracer(f.t, f.Pool, storetest.OnStatement{
		Matches: func(sent string) bool { return strings.Contains(sent, sql) },
		Do:      func(*pgx.Conn) { do() },
	})
}

var must, equal = storetest.Must, storetest.Equal

func maySendAll([]string) error { return nil }

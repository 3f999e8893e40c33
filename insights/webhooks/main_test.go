package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture is a database with Webhooks that accept http URLs.
type fixture struct {
	pool *pgxpool.Pool
	*Webhooks
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	pool := storetest.New(t)
	master, err := OpenMaster(t.Context(), pool, "")
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{pool, New(Config{Pool: pool, Master: master, AllowPrivate: true, NewID: store.NewID})}
}

func (f *fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := f.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := f.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *fixture) account(t testing.TB) store.ID {
	t.Helper()
	id := store.NewID()
	f.exec(t, `
WITH plan AS (INSERT INTO plans (code, features) VALUES ('p', '{api_access}') ON CONFLICT DO NOTHING)
INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')`, id)
	return id
}

// endpoint registers an endpoint for all events.
func (f *fixture) endpoint(t testing.TB, account store.ID, url string) *Endpoint {
	t.Helper()
	e, _, err := f.Create(t.Context(), account, url, "", []string{All})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// record records n completed runs of an account and returns the events' ids.
func (f *fixture) record(t testing.TB, account store.ID, n int) (ids []store.ID) {
	t.Helper()
	var causes []Cause
	for range n {
		id := store.NewID()
		ids = append(ids, id)
		causes = append(causes, Cause{account, id, RunCompleted, store.NewID(), []byte(`{"id":"` + id.Text("run") + `"}`)})
	}
	f.recordCauses(t, causes...)
	return ids
}

func (f *fixture) recordCauses(t testing.TB, causes ...Cause) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error { return Record(t.Context(), tx, causes) })
	if err != nil {
		t.Fatal(err)
	}
}

// dispatcher returns a dispatcher that does not run. A test calls its steps.
func (f *fixture) dispatcher(limits Limits) *Dispatcher {
	return NewDispatcher(DispatcherConfig{Pool: f.pool, Master: f.cfg.Master, AllowPrivate: true, Limits: limits})
}

// dispatch runs a dispatcher until stop is called or the test ends.
func (f *fixture) dispatch(t testing.TB, change func(*Dispatcher)) (d *Dispatcher, stop func()) {
	t.Helper()
	d = f.dispatcher(DefaultLimits())
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
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitTimeout is how long a test waits for a condition.
const waitTimeout = 30 * time.Second

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitTimeout)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", waitTimeout, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// A receiver collects the events that it is sent.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events map[string]int // by webhook-id
	most   int            // requests at a time
	now    int
}

// newReceiver returns a receiver that responds by respond, or with 204.
func newReceiver(t testing.TB, respond http.HandlerFunc) *receiver {
	r := &receiver{events: make(map[string]int)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if respond != nil && request.ContentLength < 1<<10 { // so that the server notices when the client goes
			body, _ := io.ReadAll(request.Body)
			request.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.mu.Lock()
		r.events[request.Header.Get("webhook-id")]++
		r.now++
		r.most = max(r.most, r.now)
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			r.now--
			r.mu.Unlock()
		}()
		if respond == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		respond(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

// times returns how often an event was received.
func (r *receiver) times(event store.ID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[event.Text("evt")]
}

func (r *receiver) received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

func decode(t testing.TB, text []byte) (value map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

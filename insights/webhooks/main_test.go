package webhooks

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture is a database with Webhooks that accept http URLs.
type fixture struct {
	*webhookstest.DB
	*Webhooks
	master *Master
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	db := webhookstest.New(t)
	master, err := OpenMaster(t.Context(), db.Pool, "")
	must(t, err)
	return &fixture{db, New(Config{Pool: db.Pool, Master: master, AllowPrivate: true, NewID: store.NewID}), master}
}

// endpoint registers an endpoint for all events.
func (f *fixture) endpoint(t testing.TB, account store.ID, url string) *Endpoint {
	t.Helper()
	e, _, err := f.Create(t.Context(), account, url, "", []string{All})
	must(t, err)
	return e
}

// record records n completed runs of an account and returns the events' ids.
func (f *fixture) record(t testing.TB, account store.ID, n int) (ids []store.ID) {
	t.Helper()
	var causes []events.Cause
	for range n {
		c := cause(account, events.RunCompleted)
		ids, causes = append(ids, c.ID), append(causes, c)
	}
	f.recordCauses(t, causes...)
	return ids
}

func (f *fixture) recordCauses(t testing.TB, causes ...events.Cause) {
	t.Helper()
	must(t, f.tryToRecord(t, causes...))
}

func (f *fixture) tryToRecord(t testing.TB, causes ...events.Cause) error {
	return pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error { return Record(t.Context(), tx, causes) })
}

// begin returns a transaction that has executed a statement. It is rolled back when the test ends.
func (f *fixture) begin(t testing.TB, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	must(t, errOf(tx.Exec(t.Context(), sql, args...)))
	return tx
}

// start calls f in another goroutine.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// disable disables an endpoint as its customer does.
func (f *fixture) disable(t testing.TB, account store.ID, e *Endpoint) {
	t.Helper()
	must(t, errOf(f.Update(t.Context(), account, e.ID, Change{Enabled: new(false)}, nil)))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func maySendAll([]string) error { return nil }

func mayReadAll(string) bool { return true }

// cause returns an event to record.
func cause(account store.ID, eventType string) events.Cause {
	return events.Cause{AccountID: account, ID: store.NewID(), Type: eventType, SubjectID: store.NewID(), Data: []byte("{}")}
}

package webhooks

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A fixture is a database with Webhooks that accept http URLs, and an account with an endpoint for all events at
// aURL.
type fixture struct {
	*webhookstest.DB
	*Webhooks
	t       testing.TB
	admin   Admin
	account store.ID
	e       *Endpoint
}

const aURL, bURL = "https://a.example/", "https://b.example/"

// newFixture returns a fixture for a test, which runs in parallel with others.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	db := webhookstest.New(t)
	master, err := OpenMaster(t.Context(), db.Pool, "")
	must(t, err)
	w := New(Config{Pool: db.Pool, Master: master, AllowPrivate: true, NewID: store.NewID})
	f := &fixture{DB: db, Webhooks: w, t: t, admin: Admin{db.Pool, "ann"}, account: db.NewAccount(t)}
	f.e = f.endpoint(f.account, aURL)
	return f
}

// endpoint registers an endpoint for events of types, or for all events.
func (f *fixture) endpoint(account store.ID, url string, types ...string) *Endpoint {
	f.t.Helper()
	if types == nil {
		types = []string{All}
	}
	e, _, err := f.Create(f.t.Context(), account, url, "", types)
	must(f.t, err)
	return e
}

// update changes the endpoint. No events of the type refused may be sent to a new URL.
func (f *fixture) update(c Change, refused string) error {
	return errOf(f.Update(f.t.Context(), f.account, f.e.ID, c, func(types []string) error {
		if slices.Contains(types, refused) {
			return errRefused
		}
		return nil
	}))
}

var errRefused = errors.New("refused")

// disable disables the endpoint as its customer does.
func (f *fixture) disable() {
	f.t.Helper()
	must(f.t, f.update(Change{Enabled: new(false)}, ""))
}

// delete deletes an endpoint of the account some time ago.
func (f *fixture) delete(e *Endpoint, ago string) {
	f.t.Helper()
	must(f.t, f.Delete(f.t.Context(), f.account, e.ID))
	f.Exec(f.t, `UPDATE webhook_endpoints SET deleted_at = now() - $2::interval WHERE id = $1`, e.ID, ago)
}

// resend queues an event again.
func (f *fixture) resend(event store.ID) (*Delivery, error) {
	return f.Resend(f.t.Context(), f.account, f.e.ID, event, func(string) bool { return true })
}

// record records n completed runs of an account and returns the events' ids.
func (f *fixture) record(account store.ID, n int) (ids []store.ID) {
	f.t.Helper()
	var causes []events.Cause
	for range n {
		c := cause(account, events.RunCompleted)
		ids, causes = append(ids, c.ID), append(causes, c)
	}
	must(f.t, f.tryRecord(causes...))
	return ids
}

func (f *fixture) tryRecord(causes ...events.Cause) error {
	ctx := f.t.Context()
	return pgx.BeginFunc(ctx, f.Pool, func(tx pgx.Tx) error { return Record(ctx, tx, causes) })
}

// cause returns an event to record.
func cause(account store.ID, eventType string) events.Cause {
	return events.Cause{
		AccountID: account, ID: store.NewID(), Type: eventType, SubjectID: store.NewID(), Data: []byte("{}"),
	}
}

// beside begins a call that must wait for a transaction, calls meanwhile, commits the transaction and returns the error
// of the call.
func (f *fixture) beside(tx pgx.Tx, call func() error, meanwhile ...func()) error {
	f.t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	storetest.UntilWaiting(f.t, f.Pool, "transactionid")
	for _, do := range meanwhile {
		do()
	}
	must(f.t, tx.Commit(f.t.Context()))
	return <-done
}

var must, equal = storetest.Must, storetest.Equal

// wantError reports an error that is not the wanted one.
func wantError(t testing.TB, what string, want, got error) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

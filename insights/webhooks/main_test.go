package webhooks

import (
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
		id := store.NewID()
		ids = append(ids, id)
		causes = append(causes, cause(account, id, events.RunCompleted, store.NewID(), []byte(`{"id":"`+id.Text("run")+`"}`)))
	}
	f.recordCauses(t, causes...)
	return ids
}

func (f *fixture) recordCauses(t testing.TB, causes ...events.Cause) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error { return Record(t.Context(), tx, causes) })
	must(t, err)
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
func cause(account, id store.ID, eventType string, subject store.ID, data []byte) events.Cause {
	return events.Cause{AccountID: account, ID: id, Type: eventType, SubjectID: subject, Data: data}
}

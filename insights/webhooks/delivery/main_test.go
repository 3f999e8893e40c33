package delivery

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/insights/webhooks"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
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

// completed returns the event of a new run of an account that is completed.
func completed(account store.ID) webhooks.Cause {
	return webhooks.Cause{AccountID: account, ID: store.NewID(), Type: webhooks.RunCompleted, SubjectID: store.NewID(), Data: []byte(`{"id":"run"}`)}
}

// record records n completed runs of an account and returns the events' ids.
func (f *fixture) record(t testing.TB, account store.ID, n int) (ids []store.ID) {
	t.Helper()
	var causes []webhooks.Cause
	for range n {
		c := completed(account)
		causes, ids = append(causes, c), append(ids, c.ID)
	}
	f.recordCauses(t, causes...)
	return ids
}

func (f *fixture) recordCauses(t testing.TB, causes ...webhooks.Cause) {
	t.Helper()
	must(t, pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error { return webhooks.Record(t.Context(), tx, causes) }))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

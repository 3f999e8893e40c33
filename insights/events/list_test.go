package events_test

import (
	"slices"
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

// TestNewestEventsByFilter: pages are newest first and have the events of the filter.
func TestNewestEventsByFilter(t *testing.T) {
	t.Parallel()
	db := webhookstest.New(t)
	account, start := db.NewAccount(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ids := make([]store.ID, 12) // newest first
	for i := range ids {
		ids[i] = store.NewID()
	}
	slices.SortFunc(ids, func(a, b store.ID) int { return b.Compare(a) }) // of one time
	types := events.Types()[:3]
	var causes []events.Cause
	for i, id := range ids {
		causes = append(causes, events.Cause{
			AccountID: account, ID: id, Type: types[i%3], SubjectID: store.NewID(), Data: []byte(`{}`),
		})
	}
	must(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error { return webhooks.Record(t.Context(), tx, causes) }))
	for i, id := range ids {
		db.Exec(t, `UPDATE events SET created_at = $2 WHERE id = $1`, id, start.Add(-time.Duration(i/2)*time.Hour))
	}
	from, to := start.Add(-4*time.Hour), start.Add(-2*time.Hour)
	for _, test := range []struct {
		filter events.Filter
		want   []int // positions in ids
	}{
		{events.Filter{}, nil},
		{events.Filter{Types: types[:2]}, []int{0, 1, 3, 4, 6, 7, 9, 10}},
		{events.Filter{Types: types, From: &from, To: &to}, []int{6, 7, 8, 9}},
	} {
		var got []int
		for page, more := (store.Page{Limit: 3}), true; more; {
			rows, err := events.List(t.Context(), db.Pool, account, test.filter, page)
			must(t, err)
			more = len(rows) > page.Limit
			for _, e := range rows[:min(page.Limit, len(rows))] {
				got = append(got, slices.Index(ids, e.ID))
				page.After = &store.Position{Time: e.CreatedAt, ID: e.ID}
			}
		}
		storetest.Equal(t, test.want, got, test.filter)
	}
}

var must = storetest.Must

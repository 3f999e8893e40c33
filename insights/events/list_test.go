package events_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	account := db.NewAccount(t)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ids := make([]store.ID, 12)
	for i := range ids {
		ids[i] = store.NewID()
	}
	slices.SortFunc(ids, store.ID.Compare) // those of one millisecond
	var want []store.ID
	for i, id := range ids {
		must(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			return webhooks.Record(t.Context(), tx, []events.Cause{{
				AccountID: account, ID: id, Type: events.Types()[i%3], SubjectID: store.NewID(), Data: []byte(`{}`),
			}})
		}))
		db.Exec(t, `UPDATE events SET created_at = $2 WHERE id = $1`, id, start.Add(time.Duration(i/2)*time.Hour))
		want = append([]store.ID{id}, want...)
	}
	list := func(filter events.Filter, limit int) (ids []store.ID) {
		page := store.Page{Limit: limit}
		for {
			rows, err := events.List(t.Context(), db.Pool, account, filter, page)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range rows[:min(limit, len(rows))] {
				ids = append(ids, e.ID)
				page.After = &store.Position{Time: e.CreatedAt, ID: e.ID}
			}
			if len(rows) <= limit {
				return ids
			}
		}
	}
	if diff := cmp.Diff(want, list(events.Filter{Types: events.Types()}, 5)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if got := list(events.Filter{}, 5); got != nil {
		t.Errorf("no type: %v", got)
	}
	from, to := start.Add(time.Hour), start.Add(3*time.Hour)
	for _, test := range []struct {
		filter events.Filter
		want   []int // positions in want
	}{
		{events.Filter{Types: events.Types()[:1]}, []int{2, 5, 8, 11}},
		{events.Filter{Types: events.Types()[:2]}, []int{1, 2, 4, 5, 7, 8, 10, 11}},
		{events.Filter{Types: events.Types(), From: &from, To: &to}, []int{6, 7, 8, 9}},
		{events.Filter{Types: events.Types()[2:3], From: &from, To: &to}, []int{6, 9}},
	} {
		var ids []store.ID
		for _, i := range test.want {
			ids = append(ids, want[i])
		}
		if diff := cmp.Diff(ids, list(test.filter, 2)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.filter, diff)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

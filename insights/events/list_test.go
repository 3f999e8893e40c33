package events_test

import (
	"encoding/json"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestNewestEventsByFilter: pages are newest first and have the events of the filter.
func TestNewestEventsByFilter(t *testing.T) {
	t.Parallel()
	db := webhookstest.New(t)
	account, types := db.NewAccount(t), events.Types()[:3]
	// Events 0 to 11, newest first, two of each hour and three types in turns. Of one time the higher id is first.
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	db.Exec(t, `
INSERT INTO events (account_id, id, type, subject_id, data, created_at)
SELECT $1, lpad((99 - n)::text, 32, '0')::uuid, ($2::text[])[n % 3 + 1], gen_random_uuid(), json_build_object('n', n),
  $3::timestamptz - interval '1 hour' * (n / 2)
FROM generate_series(0, 11) n`, account, types, start)
	from, to := start.Add(-4*time.Hour), start.Add(-2*time.Hour)
	for _, test := range []struct {
		filter events.Filter
		want   []int
	}{
		{events.Filter{}, nil},
		{events.Filter{Types: types[:2]}, []int{0, 1, 3, 4, 6, 7, 9, 10}},
		{events.Filter{Types: types, From: &from, To: &to}, []int{6, 7, 8, 9}},
	} {
		var got []int
		for page, more := (store.Page{Limit: 3}), true; more; {
			rows, err := events.List(t.Context(), db.Pool, account, test.filter, page)
			storetest.Must(t, err)
			more = len(rows) > page.Limit
			for _, e := range rows[:min(page.Limit, len(rows))] {
				var data struct{ N int }
				storetest.Must(t, json.Unmarshal(e.Data, &data))
				got = append(got, data.N)
				page.After = &store.Position{Time: e.CreatedAt, ID: e.ID}
			}
		}
		storetest.Equal(t, test.want, got, test.filter)
	}
}

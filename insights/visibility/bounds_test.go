package visibility_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
)

// TestBucketsOfDays: a query may have 10,000 rows, whether its buckets have answers or not. A day that its time zone
// skips is no bucket.
func TestBucketsOfDays(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 1)
	s.createBrand(t, brands.Own, "Kovalt")
	read := func(from time.Time, days int) (found []string, err error) {
		q := &visibility.Query{Zone: from.Location(), GroupBy: []visibility.Dimension{visibility.ByDay}}
		q.From, q.To = &from, new(from.AddDate(0, 0, days))
		m, err := visibility.ReadMetrics(t.Context(), s.pool, s.account, q)
		if err != nil {
			return nil, err
		}
		for _, row := range m.Rows {
			found = append(found, row.Group[0])
		}
		return found, nil
	}
	days, err := read(time.Date(2011, 12, 29, 0, 0, 0, 0, zone("Pacific/Apia")), 3)
	if want := []string{"2011-12-29", "2011-12-31"}; !slices.Equal(days, want) {
		t.Errorf("got %v (%v), want %v", days, err, want)
	}
	check := func(days int, want error) {
		t.Helper()
		rows, err := read(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), days)
		if !errors.Is(err, want) || err == nil && len(rows) != 10_000 {
			t.Errorf("got %d rows, %v; want %v", len(rows), err, want)
		}
	}
	check(10_000, nil)
	check(10_001, visibility.ErrTooManyRows)
	s.createBrand(t, brands.Competitor, "Ostrel")
	check(5_001, visibility.ErrTooManyRows)
	check(5_000, nil)
}

// TestStartOfDay compares the first instant of days with that found by looking at each minute. Clocks skip midnight, or
// have it twice, and one day is missing.
func TestStartOfDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, day string }{
		{"Pacific/Apia", "2011-12-30"}, {"America/Sao_Paulo", "2018-11-04"}, {"Africa/Cairo", "2026-04-24"},
		{"Africa/Cairo", "2026-10-30"}, {"America/Havana", "2026-03-08"}, {"America/Havana", "2026-11-01"},
		{"Europe/Rome", "2026-03-29"}, {"Europe/Rome", "2026-10-25"}, {"Asia/Kathmandu", "1986-01-01"},
		{"Pacific/Kiritimati", "2026-01-01"}, {"Pacific/Pago_Pago", "2026-01-01"}, {"America/St_Johns", "2006-10-29"},
		{"Asia/Amman", "2022-02-25"}, {"UTC", "2026-03-01"},
	} {
		in := zone(tt.zone)
		day, err := time.Parse(time.DateOnly, tt.day)
		must(t, err)
		want := day.Add(-40 * time.Hour)
		for want.In(in).Format(time.DateOnly) < tt.day {
			want = want.Add(time.Minute)
		}
		if got := visibility.StartOfDay(day.Year(), day.Month(), day.Day(), in); !got.Equal(want) {
			t.Errorf("%s in %s: got %v, want %v", tt.day, tt.zone, got, want.In(in))
		}
	}
}

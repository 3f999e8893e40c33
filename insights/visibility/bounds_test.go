package visibility_test

import (
	"errors"
	"strings"
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
	check := func(from time.Time, days, want int) {
		t.Helper()
		q := &visibility.Query{Zone: from.Location(), GroupBy: []visibility.Dimension{visibility.ByDay}}
		q.From, q.To = &from, new(from.AddDate(0, 0, days))
		m, err := visibility.ReadMetrics(t.Context(), s.pool, s.account, q)
		if want == 0 && !errors.Is(err, visibility.ErrTooManyRows) || want > 0 && (err != nil || len(m.Rows) != want) {
			t.Errorf("%d days: %v, want %d rows", days, err, want)
		}
	}
	check(time.Date(2011, 12, 29, 0, 0, 0, 0, zone("Pacific/Apia")), 3, 2)
	check(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), 10_000, 10_000)
	check(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), 10_001, 0)
	s.createBrand(t, brands.Competitor, "Ostrel")
	check(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), 5_001, 0)
}

// TestStartOfDay compares the first instant of days with that found by looking at each minute. Clocks skip midnight, or
// have it twice, and one day is missing.
func TestStartOfDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []string{
		"Pacific/Apia 2011-12-30", "America/Sao_Paulo 2018-11-04", "Africa/Cairo 2026-04-24", "Africa/Cairo 2026-10-30",
		"America/Havana 2026-03-08", "America/Havana 2026-11-01", "Europe/Rome 2026-03-29", "Europe/Rome 2026-10-25",
		"Asia/Kathmandu 1986-01-01", "Pacific/Kiritimati 2026-01-01", "America/St_Johns 2006-10-29", "Asia/Amman 2022-02-25",
	} {
		name, date, _ := strings.Cut(tt, " ")
		in := zone(name)
		day, err := time.Parse(time.DateOnly, date)
		must(t, err)
		want := day.Add(-40 * time.Hour)
		for want.In(in).Format(time.DateOnly) < date {
			want = want.Add(time.Minute)
		}
		if got := visibility.StartOfDay(day.Year(), day.Month(), day.Day(), in); !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", tt, got, want.In(in))
		}
	}
}

package visibility_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
)

// TestTooManyRows: a query may have 10,000 rows, whether its buckets have answers or not.
func TestTooManyRows(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 1)
	s.createBrand(t, s.account, brands.Own, "Kovalt")
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	q := &visibility.Query{Zone: time.UTC, GroupBy: []visibility.Dimension{visibility.ByDay}}
	for _, tt := range []struct {
		days   int
		brands int
		want   error
	}{{10_000, 1, nil}, {10_001, 1, visibility.ErrTooManyRows}, {5_001, 2, visibility.ErrTooManyRows}, {5_000, 2, nil}} {
		if tt.brands == 2 && s.count(t, `SELECT count(*) FROM brands`) == 1 {
			s.createBrand(t, s.account, brands.Competitor, "Ostrel")
		}
		q.From, q.To = &from, new(from.AddDate(0, 0, tt.days))
		m, err := visibility.ReadMetrics(t.Context(), s.pool, s.account, q)
		if !errors.Is(err, tt.want) || err == nil && len(m.Rows) != 10_000 {
			t.Errorf("%d days of %d brands: %v", tt.days, tt.brands, err)
		}
	}
}

// TestDayThatATimeZoneSkips: a day without an instant is no bucket.
func TestDayThatATimeZoneSkips(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 1)
	s.createBrand(t, s.account, brands.Own, "Kovalt")
	apia := zone("Pacific/Apia")
	q := &visibility.Query{Zone: apia, GroupBy: []visibility.Dimension{visibility.ByDay}}
	q.From, q.To = new(time.Date(2011, 12, 29, 0, 0, 0, 0, apia)), new(time.Date(2012, 1, 1, 0, 0, 0, 0, apia))
	m, err := visibility.ReadMetrics(t.Context(), s.pool, s.account, q)
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for _, row := range m.Rows {
		days = append(days, row.Group[0])
	}
	if want := []string{"2011-12-29", "2011-12-31"}; !slices.Equal(days, want) {
		t.Errorf("got %v, want %v", days, want)
	}
}

// TestStartOfDay compares the first instant of days with that found by looking at each minute. Clocks skip midnight, or
// have it twice, and one day is missing.
func TestStartOfDay(t *testing.T) {
	t.Parallel()
	type day struct {
		zone string
		y    int
		m    time.Month
		d    int
	}
	days := []day{{"Pacific/Apia", 2011, 12, 30}, {"America/Sao_Paulo", 2018, 11, 4}, {"Africa/Cairo", 2026, 4, 24}, {"Africa/Cairo", 2026, 10, 30},
		{"America/Havana", 2026, 3, 8}, {"America/Havana", 2026, 11, 1}, {"Europe/Rome", 2026, 3, 29}, {"Europe/Rome", 2026, 10, 25}, {"Asia/Kathmandu", 1986, 1, 1},
		{"Pacific/Kiritimati", 2026, 1, 1}, {"Pacific/Pago_Pago", 2026, 1, 1}, {"America/St_Johns", 2006, 10, 29}, {"Asia/Amman", 2022, 2, 25}, {"UTC", 2026, 3, 1}}
	for _, d := range days {
		in := zone(d.zone)
		want := time.Date(d.y, d.m, d.d, 0, 0, 0, 0, time.UTC).Add(-40 * time.Hour)
		for want.In(in).Format(time.DateOnly) < time.Date(d.y, d.m, d.d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) {
			want = want.Add(time.Minute)
		}
		if got := visibility.StartOfDay(d.y, d.m, d.d, in); !got.Equal(want) {
			t.Errorf("%d-%02d-%02d in %s: got %v, want %v", d.y, d.m, d.d, d.zone, got, want.In(in))
		}
	}
}

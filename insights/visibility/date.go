package visibility

import (
	"time"
)

// A date is a day of the calendar, in days since 1970-01-01.
type date int32

// dateOf returns the day of a time in its location.
func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// utc returns midnight UTC of the day, for arithmetic with package time.
func (d date) utc() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

func (d date) String() string { return d.utc().Format(time.DateOnly) }

// bucketOf returns the first day of the bucket that has a time. Weeks begin on Monday.
func bucketOf(t time.Time, by Dimension, zone *time.Location) date {
	d := dateOf(t.In(zone))
	switch day := d.utc(); by {
	case ByWeek:
		// Weekday counts from Sunday, so this is the number of days since Monday.
		return d - date((day.Weekday()+6)%7)
	case ByMonth:
		return d - date(day.Day()-1)
	}
	return d
}

// next returns the first day of the bucket after the one that begins at d.
func (d date) next(by Dimension) date {
	switch by {
	case ByWeek:
		return d + 7
	case ByMonth:
		return dateOf(d.utc().AddDate(0, 1, 0))
	}
	return d + 1
}

// existsIn reports whether a time zone has the day. A zone that crosses the date line may skip one.
func (d date) existsIn(zone *time.Location) bool {
	y, m, day := d.utc().Date()
	return dateOf(StartOfDay(y, m, day, zone)) == d
}

// StartOfDay returns the first instant of a day in a time zone: usually midnight, but some zones skip it, and in some
// it comes twice.
func StartOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	want := dateOf(midnight)
	var start time.Time
	// The offset of the zone may change near midnight. Each offset in use around the day gives a candidate, and the
	// earliest that is midnight there is the start.
	for _, near := range []time.Time{midnight.Add(-36 * time.Hour), midnight, midnight.Add(36 * time.Hour)} {
		_, offset := near.In(zone).Zone()
		t := midnight.Add(-time.Duration(offset) * time.Second).In(zone)
		if dateOf(t) == want && t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 && (start.IsZero() || t.Before(start)) {
			start = t
		}
	}
	if !start.IsZero() {
		return start
	}
	// The day begins where the clock is set forward.
	for t := midnight.Add(-36 * time.Hour).In(zone); ; {
		_, end := t.ZoneBounds()
		if t = end.In(zone); end.IsZero() || dateOf(t) >= want {
			return t
		}
	}
}

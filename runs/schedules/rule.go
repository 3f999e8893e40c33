package schedules

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines without the database
)

// The cadences of a rule.
const (
	Hourly  = "hourly"
	Daily   = "daily"
	Weekly  = "weekly"
	Monthly = "monthly"
)

// Cadences lists them, and Weekdays the days of a week by the numbers of package time.
var (
	Cadences = []string{Hourly, Daily, Weekly, Monthly}
	Weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// A Rule determines due times. An hourly one has a due time in each hour of UTC. The others have dates in a time zone,
// and the due time of a date is the first instant at which the zone's clock shows that date and At, or later. So a time
// that clocks skip is due at the end of the gap, and a time that clocks repeat is due once, the first time.
//
// Due times are whole minutes. Two dates have one due time if the zone skipped the first date as a whole.
type Rule struct {
	Cadence string
	At      int     // minutes after midnight; of an hourly rule, the minute
	Weekday *string // of a weekly rule
	Day     *int    // of a monthly rule; a shorter month has its last day
	Zone    string
}

// A Clock is a rule with its time zone.
type Clock struct {
	Rule
	zone *time.Location
}

// Clock loads the time zone of the rule. It does not repeat the checks of LoadZone, so that a rule that was stored
// before one of them existed still has due times.
func (r Rule) Clock() (Clock, error) {
	zone, err := time.LoadLocation(r.Zone)
	return Clock{r, zone}, err
}

// After returns the earliest due time after t.
func (c Clock) After(t time.Time) time.Time {
	if c.Cadence == Hourly {
		due := t.UTC().Truncate(time.Hour).Add(time.Duration(c.At) * time.Minute)
		if !due.After(t) {
			due = due.Add(time.Hour)
		}
		return due
	}
	// No zone is a day apart from UTC, so earlier dates are due at t or before.
	for date := c.firstDate(t.UTC().AddDate(0, 0, -2)); ; date = c.nextDate(date) {
		if due := c.due(date); due.After(t) {
			return due
		}
	}
}

// Times returns the n due times after t.
func (c Clock) Times(t time.Time, n int) []time.Time {
	times := make([]time.Time, n)
	for i := range times {
		t = c.After(t)
		times[i] = t
	}
	return times
}

// firstDate returns the rule's first date on or after a date, as midnight UTC. A monthly date may be before it.
func (c Clock) firstDate(from time.Time) time.Time {
	year, month, day := from.Date()
	switch c.Cadence {
	case Weekly:
		want := slices.Index(Weekdays, *c.Weekday)
		// The days until the weekday of the rule, 0 to 6. time.Date normalizes the day.
		day += (want - int(from.Weekday()) + 7) % 7
	case Monthly:
		return c.dateIn(year, month)
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// nextDate returns the rule's date after one of its dates.
func (c Clock) nextDate(date time.Time) time.Time {
	switch c.Cadence {
	case Weekly:
		return date.AddDate(0, 0, 7)
	case Monthly:
		return c.dateIn(date.Year(), date.Month()+1)
	}
	return date.AddDate(0, 0, 1)
}

// dateIn returns the date of a monthly rule in a month.
func (c Clock) dateIn(year int, month time.Month) time.Time {
	// Day 0 of a month is the last day of the month before.
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return last.AddDate(0, 0, min(*c.Day, last.Day())-last.Day())
}

// due returns the due time of a date. It searches the spans of time in which the zone's clock has one offset from UTC.
func (c Clock) due(date time.Time) time.Time {
	local := date.Add(time.Duration(c.At) * time.Minute) // what the clock must show, as a time of UTC
	// Offsets are less than 16 h, so the clock shows an earlier time at the beginning of the search.
	for t := local.Add(-26 * time.Hour); ; {
		at := t.In(c.zone)
		_, offset := at.Zone()
		due := local.Add(-time.Duration(offset) * time.Second)
		if due.Before(t) { // clocks have skipped it
			due = t
		}
		if _, end := at.ZoneBounds(); !end.IsZero() && !end.After(t) {
			// Go 1.26 returns an earlier end on the last day of leap years after 2037, on which no zone changes its
			// clocks.
			if next := t.Add(time.Hour); !due.Before(next) {
				t = next
				continue
			}
		} else if !end.IsZero() && !due.Before(end) {
			// The next offset begins at the end of this one.
			t = end.UTC()
			continue
		}
		// Offsets may have seconds, as they had before time zones were standardized.
		if whole := due.Truncate(time.Minute); whole.Before(due) {
			due = whole.Add(time.Minute)
		}
		return due
	}
}

// A Span describes the due times from a first one up to a moment.
type Span struct {
	Count      int       // at least 1
	Last       time.Time // of them
	NextToLast time.Time // if there are several
	Next       time.Time // the first one after the moment
}

// Span returns the due times from first, which may be of an earlier rule, up to now. now must not be before first. Span
// counts the hours of an hourly rule by their difference, and the dates of other rules one by one.
func (c Clock) Span(first, now time.Time) Span {
	s := Span{Count: 1, Last: first, Next: c.After(first)}
	// The usual case: one due time.
	if s.Next.After(now) {
		return s
	}
	if c.Cadence == Hourly {
		// Due times after first: s.Next and one in each full hour since.
		hours := int(now.Sub(s.Next) / time.Hour)
		s.Count, s.Last, s.NextToLast = 2+hours, s.Next.Add(time.Duration(hours)*time.Hour), first
		if hours > 0 {
			s.NextToLast = s.Last.Add(-time.Hour)
		}
		s.Next = s.Last.Add(time.Hour)
		return s
	}
	for date := c.firstDate(first.UTC().AddDate(0, 0, -2)); ; date = c.nextDate(date) {
		due := c.due(date)
		// The search begins before first. A date that the zone skipped may be due at the same time as the next date.
		if !due.After(s.Last) {
			continue
		}
		if due.After(now) {
			s.Next = due
			return s
		}
		s.Count, s.NextToLast, s.Last = s.Count+1, s.Last, due
	}
}

// LoadZone returns a time zone by its name in IANA's database. It rejects names of files that are not zones, and other
// paths to the file of a zone, such as Europe//Rome, which a machine would not find in the binary's copy.
func LoadZone(name string) (*time.Location, error) {
	// Package time accepts the first two names, and the system's files of zones may include the others.
	switch name {
	case "", "Local", "localtime", "Factory", "posixrules":
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	if path.Clean(name) != name || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	return time.LoadLocation(name)
}

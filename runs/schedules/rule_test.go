package schedules_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/runs/schedules"
	"aiv/store/storetest"
)

// TestDueTimesAroundClockChanges has the due times around changes of clocks.
func TestDueTimesAroundClockChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, after, want string }{
		{"daily 02:30 Europe/Rome", "2027-03-26T12:00", "2027-03-27T01:30 2027-03-28T01:00 2027-03-29T00:30 2027-03-30T00:30 2027-03-31T00:30"},
		{"daily 02:30 Europe/Rome", "2026-10-23T12:00", "2026-10-24T00:30 2026-10-25T00:30 2026-10-26T01:30 2026-10-27T01:30 2026-10-28T01:30"},
		{"daily 03:00 Europe/Rome", "2026-10-23T12:00", "2026-10-24T01:00 2026-10-25T02:00 2026-10-26T02:00 2026-10-27T02:00 2026-10-28T02:00"},
		{"daily 01:30 America/New_York", "2026-10-30T12:00", "2026-10-31T05:30 2026-11-01T05:30 2026-11-02T06:30 2026-11-03T06:30 2026-11-04T06:30"},
		{"daily 02:30 America/New_York", "2027-03-12T12:00", "2027-03-13T07:30 2027-03-14T07:00 2027-03-15T06:30 2027-03-16T06:30 2027-03-17T06:30"},
		{"daily 02:15 Australia/Lord_Howe", "2026-10-02T00:00", "2026-10-02T15:45 2026-10-03T15:30 2026-10-04T15:15 2026-10-05T15:15 2026-10-06T15:15"},
		{"daily 01:45 Australia/Lord_Howe", "2027-04-02T12:00", "2027-04-02T14:45 2027-04-03T14:45 2027-04-04T15:15 2027-04-05T15:15 2027-04-06T15:15"},
		{"daily 06:00 Pacific/Apia", "2011-12-28T20:00", "2011-12-29T16:00 2011-12-30T10:00 2011-12-30T16:00 2011-12-31T16:00 2012-01-01T16:00"},
		{"daily 00:00 Pacific/Apia", "2011-12-28T20:00", "2011-12-29T10:00 2011-12-30T10:00 2011-12-31T10:00 2012-01-01T10:00 2012-01-02T10:00"},
		{"weekly friday 06:00 Pacific/Apia", "2011-12-24T20:00", "2011-12-30T10:00 2012-01-05T16:00 2012-01-12T16:00 2012-01-19T16:00 2012-01-26T16:00"},
		{"monthly 31 06:00 Europe/Rome", "2027-01-01T00:00", "2027-01-31T05:00 2027-02-28T05:00 2027-03-31T04:00 2027-04-30T04:00 2027-05-31T04:00"},
		{"monthly 28 02:30 Europe/Rome", "2027-01-01T00:00", "2027-01-28T01:30 2027-02-28T01:30 2027-03-28T01:00 2027-04-28T00:30 2027-05-28T00:30"},
		{"hourly 00:15 Australia/Lord_Howe", "2026-10-03T14:00", "2026-10-03T14:15 2026-10-03T15:15 2026-10-03T16:15 2026-10-03T17:15 2026-10-03T18:15"},
		{"hourly 00:00 UTC", "2026-10-03T14:00", "2026-10-03T15:00 2026-10-03T16:00 2026-10-03T17:00 2026-10-03T18:00 2026-10-03T19:00"},
	} {
		const form = "2006-01-02T15:04"
		after, err := time.Parse(form, test.after)
		must(t, err)
		var got []string
		for _, at := range parseRule(t, test.rule).Times(after, 5) {
			got = append(got, at.UTC().Format(form))
		}
		equal(t, strings.Fields(test.want), got, test.rule, " after ", test.after)
	}
}

// parseRule reads a rule such as "weekly friday 06:00 Pacific/Apia".
func parseRule(t *testing.T, text string) schedules.Clock {
	t.Helper()
	words := strings.Fields(text)
	at, err := time.Parse("15:04", words[len(words)-2])
	must(t, err)
	r := schedules.Rule{Cadence: words[0], At: at.Hour()*60 + at.Minute(), Zone: words[len(words)-1]}
	switch r.Cadence {
	case schedules.Weekly:
		r.Weekday = &words[1]
	case schedules.Monthly:
		day, err := strconv.Atoi(words[1])
		must(t, err)
		r.Day = &day
	}
	c, err := r.Clock()
	must(t, err)
	return c
}

// TestZonesThatAreNoneAreRefused: names of files that are no zones, and names of zones in another case, are refused.
func TestZonesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"UTC": true, "Europe/Rome": true, "America/Argentina/Buenos_Aires": true, "Etc/GMT+5": true, "EST5EDT": true,
		"": false, "Local": false, "localtime": false, "Factory": false, "posixrules": false, "posix/UTC": false, "right/UTC": false,
		"europe/rome": false, "Europe": false, "../UTC": false, "zone.tab": false, "+02:00": false, "/etc/localtime": false,
		"Europe/Rome ": false, "Europe//Rome": false, "./UTC": false, "./posix/UTC": false, ".//localtime": false,
	} {
		if _, err := schedules.LoadZone(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// zones have each kind of change of clocks: of an hour, of half an hour, of a day, at midnight, and none.
var zones = strings.Fields(`UTC Etc/GMT+5 Europe/Rome Europe/Dublin America/New_York America/Havana
	America/Santiago America/St_Johns Australia/Lord_Howe Pacific/Apia Africa/Casablanca Africa/Cairo Antarctica/Troll Asia/Tehran Asia/Kathmandu Asia/Gaza`)

// TestDueTimesEqualASearchByMinute compares due times with those that a search through every minute finds: of random
// rules, after random instants from 2000 to 2100. A count of due times is compared with a walk.
func TestDueTimesEqualASearchByMinute(t *testing.T) {
	t.Parallel()
	starts, each := 8, 25
	if storetest.Long() {
		starts, each = 2000, 50
	}
	first := rand.IntN(len(zones))
	for n := range starts {
		name := zones[(first+n)%len(zones)]
		zone, err := schedules.LoadZone(name)
		must(t, err)
		start := time.Unix(946684800+rand.Int64N(4102444800-946684800-86400*60), 0)
		if n%2 == 0 { // around a change of clocks, if the zone has one within a year
			if _, end := start.In(zone).ZoneBounds(); !end.IsZero() && end.Sub(start) < 366*24*time.Hour {
				start = end.AddDate(0, 0, -5)
			}
		}
		for range each {
			rule := randomRule(name)
			c := parseRule(t, rule)
			after := start.Add(time.Duration(rand.Int64N(int64(12 * 24 * time.Hour)))).UTC()
			got, want := c.After(after), search(c.Rule, zone, after)
			if !got.Equal(want) {
				t.Errorf("%s after %s: %s, the search finds %s", rule, after, got.UTC(), want)
			}
			checkSpan(t, c, got, rule)
		}
	}
}

// search returns the first due time after an instant by the definition of a Rule. For each date of the rule, it looks
// for the first minute in which the zone's clock shows the date and At, or later.
func search(r schedules.Rule, zone *time.Location, after time.Time) time.Time {
	if r.Cadence == schedules.Hourly {
		at := after.Truncate(time.Minute).Add(time.Minute)
		for at.Minute() != r.At {
			at = at.Add(time.Minute)
		}
		return at
	}
	for date := after.Truncate(24*time.Hour).AddDate(0, 0, -2); ; date = date.AddDate(0, 0, 1) {
		tomorrow := date.AddDate(0, 0, 1)
		if r.Weekday != nil && schedules.Weekdays[date.Weekday()] != *r.Weekday ||
			r.Day != nil && date.Day() != *r.Day && (date.Day() > *r.Day || tomorrow.Month() == date.Month()) {
			continue
		}
		want := date.Add(time.Duration(r.At) * time.Minute)
		at := want.Add(-20 * time.Hour) // when each clock shows an earlier time
		for ; ; at = at.Add(time.Minute) {
			if _, offset := at.In(zone).Zone(); !at.Add(time.Duration(offset) * time.Second).Before(want) {
				break
			}
		}
		if at.After(after) {
			return at
		}
	}
}

// checkSpan compares the count of due times from a first one, and a list of them, with a walk.
func checkSpan(t *testing.T, c schedules.Clock, first time.Time, rule string) {
	t.Helper()
	now := first.Add(time.Duration(rand.Int64N(int64(100 * 24 * time.Hour))))
	want := schedules.Span{Count: 1, Last: first, Next: c.After(first)}
	for !want.Next.After(now) {
		want.Count, want.NextToLast, want.Last, want.Next = want.Count+1, want.Last, want.Next, c.After(want.Next)
	}
	equal(t, want, c.Span(first, now), rule, " from ", first, " to ", now)
	for i, at := range c.Times(first, 3) {
		if !at.Equal(c.After(first)) || at.Truncate(time.Minute) != at {
			t.Errorf("%s: due time %d after %s is %s", rule, i, first, at)
		}
		first = at
	}
}

// randomRule returns a rule for parseRule. Half of them are due when clocks change.
func randomRule(zone string) string {
	minute := rand.IntN([]int{4, 24}[rand.IntN(2)] * 60)
	cadence := schedules.Cadences[rand.IntN(4)]
	switch cadence {
	case schedules.Hourly:
		minute %= 60
	case schedules.Weekly:
		cadence += " " + schedules.Weekdays[rand.IntN(7)]
	case schedules.Monthly:
		cadence += fmt.Sprint(" ", 1+rand.IntN(31))
	}
	return fmt.Sprintf("%s %02d:%02d %s", cadence, minute/60, minute%60, zone)
}

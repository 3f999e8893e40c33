package gateway

import (
	"fmt"
	"time"

	"aiv/gateway/problem"
	"aiv/insights/visibility"
	"aiv/runs/schedules"
)

// A window contains a time zone and times. Each time is a date in the zone, or an RFC 3339 time.
type window struct {
	zoneName string            // as sent, for the response
	zone     *time.Location    // UTC if the parameter is not given; never nil
	times    map[string]string // by parameter
}

// ofWindow returns the window of a query that embeds it.
func (w *window) ofWindow() *window { return w }

// zoneFilter accepts the name of a time zone.
func zoneFilter[F any](at func(*F) *window) filter[F] {
	const want = "the name of a time zone in IANA's database, such as Europe/Rome"
	return filter[F]{"time_zone", want, func(f *F, v string) bool {
		zone, err := schedules.LoadZone(v)
		if err == nil {
			at(f).zoneName, at(f).zone = v, zone
		}
		return err == nil
	}}
}

const wantMoment = "a date such as 2026-03-01, or an RFC 3339 time"

// momentFilter accepts a date or a time. Its value is read when the time zone is known.
func momentFilter[F any](name string, at func(*F) *window) filter[F] {
	return filter[F]{name, wantMoment, func(f *F, v string) bool {
		w := at(f)
		if w.times == nil {
			w.times = make(map[string]string)
		}
		w.times[name] = v
		// This checks the form. In the request's zone, a date at the end of the years 1 to 9999 may still be wrong; see
		// at.
		_, err := moment(v, time.UTC)
		return err == nil
	}}
}

// moment reads a date in a time zone, which is its first instant, or a time.
func moment(v string, zone *time.Location) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, v); err == nil {
		t := visibility.StartOfDay(day.Year(), day.Month(), day.Day(), zone)
		if year := t.UTC().Year(); year < 1 || year > 9999 {
			err = fmt.Errorf("%s does not begin in the years from 1 to 9999", v)
		}
		return t, err
	}
	return parseBound(v)
}

// at returns the time of a parameter, or nil if it was not given or is not valid.
func (w *window) at(name string, f *problem.Faults) *time.Time {
	v, given := w.times[name]
	if !given {
		return nil
	}
	t, err := moment(v, w.zone)
	if err != nil {
		f.AddParameter(name, "must be "+wantMoment) // no second fault if momentFilter has reported it
		return nil
	}
	return &t
}

// span returns the times of two parameters, and reports a fault if the first is not before the second. A time that is
// missing or wrong is nil, without a second fault.
func (w *window) span(from, to string, f *problem.Faults) (a, b *time.Time) {
	a, b = w.at(from, f), w.at(to, f)
	if a != nil && b != nil && !a.Before(*b) {
		f.AddParameter(from, "must be before "+to)
	}
	return a, b
}

package schedules

import (
	"fmt"

	"aiv/insights/visibility"
)

// DefaultMinChange is the MinChange of a schedule whose customer does not set it: 0.1.
const DefaultMinChange visibility.Decimal = 1000

// A Change has the members of a schedule that a customer changes; nil: unchanged.
type Change struct {
	Name      *string
	Cadence   *string
	At        *int  // minutes, as in Rule
	Weekday   *Word // nil with Cadence set: becomes null
	Day       *Number
	Zone      *string
	Run       *RunTerms
	MinChange *visibility.Decimal
	Status    *string
}

// A Word is a text or null, and a Number a number or null.
type (
	Word   struct{ Value *string }
	Number struct{ Value *int }
)

// A Fault is what is wrong with a member of a schedule. Its detail is for customers.
type Fault struct{ At, Detail string }

// An InvalidError reports members that do not fit each other after a change.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string { return e.Faults[0].At + " " + e.Faults[0].Detail }

// apply changes a schedule, except for its status.
func (c *Change) apply(s *Schedule) {
	set(&s.Name, c.Name)
	if c.Cadence != nil {
		// A cadence resets the weekday and the day. The members below may set them.
		s.Cadence, s.Weekday, s.Day = *c.Cadence, nil, nil
	}
	set(&s.At, c.At)
	if c.Weekday != nil {
		s.Weekday = c.Weekday.Value
	}
	if c.Day != nil {
		s.Day = c.Day.Value
	}
	set(&s.Zone, c.Zone)
	// The run changes as a whole.
	set(&s.RunTerms, c.Run)
	set(&s.MinChange, c.MinChange)
}

// set stores a value that is given.
func set[T any](to, v *T) {
	if v != nil {
		*to = *v
	}
}

// Faults returns which members of the rule do not fit its cadence.
func (r *Rule) Faults() (faults []Fault) {
	if r.Cadence == Hourly && r.At >= 60 {
		faults = append(faults, Fault{"at", "must be from 00:00 to 00:59, the minute of each hour, as cadence is hourly"})
	}
	// A member is required by one cadence, and not allowed by the others.
	check := func(at string, needs, has bool) {
		switch {
		case needs && !has:
			faults = append(faults, Fault{at, "is required, as cadence is " + r.Cadence})
		case !needs && has:
			faults = append(faults, Fault{at, "must be null or left out, as cadence is " + r.Cadence})
		}
	}
	check("weekday", r.Cadence == Weekly, r.Weekday != nil)
	check("day", r.Cadence == Monthly, r.Day != nil)
	return faults
}

// equal reports whether two rules have equal members.
func (r *Rule) equal(other *Rule) bool {
	return r.Cadence == other.Cadence && r.At == other.At && equal(r.Weekday, other.Weekday) && equal(r.Day, other.Day) && r.Zone == other.Zone
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// AtText returns At as customers write it.
func (r *Rule) AtText() string { return fmt.Sprintf("%02d:%02d", r.At/60, r.At%60) }

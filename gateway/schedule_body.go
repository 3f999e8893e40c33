package gateway

import (
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/visibility"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/strictjson"
)

var (
	// The members of a new schedule and of a change.
	newScheduleMembers    = bodyMembers{[]string{"name", "cadence", "at", "time_zone", "run"}, []string{"weekday", "day", "alerts"}}
	scheduleChangeMembers = bodyMembers{nil, []string{"name", "cadence", "at", "weekday", "day", "time_zone", "run", "alerts", "status"}}
)

// A scheduleBody is a body that describes a schedule, and its location. proposal is nil if it has no run. Object and
// Change both have a member At: Object.At is the location of the body, Change.At the time of day.
type scheduleBody struct {
	request.Object
	schedules.Change
	proposal *runs.Proposal
}

// readScheduleBody reads the members of a schedule that a client sets. In a new schedule it also checks that they fit
// each other.
func readScheduleBody(x *exchange, r *http.Request, members bodyMembers) (*scheduleBody, error) {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return nil, err
	}
	var f problem.Faults
	b := &scheduleBody{Object: request.NewOpenObject(body, at, &f, members.required, members.optional)}
	b.readName()
	b.Cadence = b.OneOf("cadence", schedules.Cadences)
	b.readAt()
	b.readDays()
	b.readZone()
	if run := b.Member("run"); run != nil {
		var faults problem.Faults
		// The member run has the form of the body of POST /v1/runs.
		b.proposal, faults = readProposal(run, at.Member("run"))
		f = append(f, faults...)
		p := b.proposal
		// The schedule stores the terms, and the checks need the proposal.
		b.Run = &schedules.RunTerms{ModelIDs: p.ModelIDs, QuestionIDs: p.QuestionIDs, Repetitions: p.Repetitions,
			MeasurementType: p.MeasurementType, Locale: p.Locale, Country: p.Country, Language: p.Language}
	}
	b.readAlerts(at, &f)
	isNew := len(members.required) > 0
	if !isNew {
		b.Status = b.OneOf("status", schedules.Statuses)
	}
	if isNew && b.MinChange == nil {
		b.MinChange = new(schedules.DefaultMinChange)
	}
	// A change is checked together with the stored members, by Schedules.Merge.
	if isNew {
		b.addRuleFaults(&f)
	}
	if len(f) > 0 {
		return nil, invalidSchedule(f)
	}
	return b, nil
}

// addRuleFaults reports members that do not fit the cadence, unless they or the cadence are reported already.
func (b *scheduleBody) addRuleFaults(f *problem.Faults) {
	if b.Cadence == nil || !slices.Contains(schedules.Cadences, *b.Cadence) {
		return
	}
	// Missing members stay nil or 0.
	rule := schedules.Rule{Cadence: *b.Cadence}
	if b.Change.At != nil {
		rule.At = *b.Change.At
	}
	if b.Weekday != nil {
		rule.Weekday = b.Weekday.Value
	}
	if b.Day != nil {
		rule.Day = b.Day.Value
	}
	for _, fault := range rule.Faults() {
		f.AddUnlessAt(b.Object.At.String()+"/"+fault.At, fault.Detail)
	}
}

// readName sets even an invalid name, because the request then has a fault. The readers below do the same.
func (b *scheduleBody) readName() {
	v := b.Member("name")
	if v == nil {
		return
	}
	name := b.Text("name")
	if v.Kind == strictjson.KindString {
		switch n := utf8.RuneCountInString(name); {
		case n < 1 || n > schedules.MaxName:
			b.Fault("name", fmt.Sprintf("must have 1 to %d characters", schedules.MaxName))
		case strings.TrimSpace(name) == "":
			b.Fault("name", "must not be only white space")
		case strings.ContainsFunc(name, unicode.IsControl):
			b.Fault("name", "must not contain a control character")
		}
	}
	b.Name = &name
}

// clockTime is the form of a time of day.
var clockTime = store.Pattern(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// readAt reads HH:MM as minutes after midnight. It sets 00:00 for an invalid time, so that addRuleFaults finds no
// second fault.
func (b *scheduleBody) readAt() {
	if b.Member("at") == nil {
		return
	}
	minutes := 0
	if text := b.Matching("at", clockTime(), "a time from 00:00 to 23:59, such as 06:00"); clockTime().MatchString(text) {
		minutes = int(text[0]-'0')*600 + int(text[1]-'0')*60 + int(text[3]-'0')*10 + int(text[4]-'0')
	}
	b.Change.At = &minutes
}

// readDays reads weekday and day, which may be null.
func (b *scheduleBody) readDays() {
	if v := b.Member("weekday"); v != nil {
		// Null removes a stored weekday, and a missing member keeps it.
		b.Weekday = &schedules.Word{}
		if v.Kind != strictjson.KindNull {
			b.Weekday.Value = b.OneOf("weekday", schedules.Weekdays)
		}
	}
	if v := b.Member("day"); v != nil {
		b.Day = &schedules.Number{}
		if v.Kind != strictjson.KindNull {
			b.Day.Value = new(int(b.Integer("day", 1, 31)))
		}
	}
}

// readZone checks the name against IANA's database, of which the binary has a copy for machines without it.
func (b *scheduleBody) readZone() {
	v := b.Member("time_zone")
	if v == nil {
		return
	}
	name := b.Text("time_zone")
	if v.Kind == strictjson.KindString {
		if _, err := schedules.LoadZone(name); err != nil {
			b.Fault("time_zone", "must be the name of a time zone in IANA's database, such as Europe/Rome")
		}
	}
	b.Zone = &name
}

// readAlerts reads the member alerts, an object with exactly min_change.
func (b *scheduleBody) readAlerts(at *request.Location, f *problem.Faults) {
	v := b.Member("alerts")
	if v == nil {
		return
	}
	// NewObject adds a fault unless alerts is an object with exactly this member.
	o := request.NewObject(v, at.Member("alerts"), f, "min_change")
	change := o.Member("min_change")
	if change == nil {
		return
	}
	n, ok := tenThousandths(change)
	if !ok {
		o.Fault("min_change", "must be a number from 0 to 1 with at most four decimals")
	}
	b.MinChange = &n
}

// tenThousandths reads a number from 0 to 1 with at most four decimals.
func tenThousandths(v *strictjson.Value) (visibility.Decimal, bool) {
	const longest = 64 // characters; a larger exponent could need any amount of memory
	if v.Kind != strictjson.KindNumber || len(v.Text) > longest {
		return 0, false
	}
	// The exponent, with its sign, may have three characters, for the same reason. The parser has checked the syntax.
	if at := strings.IndexAny(v.Text, "eE"); at >= 0 && len(v.Text)-at > len("e-99") {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(v.Text)
	if !ok || r.Sign() < 0 || r.Cmp(big.NewRat(1, 1)) > 0 {
		return 0, false
	}
	// If IsInt reports false, the number has more than four decimals, and the numerator means nothing.
	r.Mul(r, big.NewRat(10_000, 1))
	return visibility.Decimal(r.Num().Int64()), r.IsInt()
}

func invalidSchedule(f problem.Faults) error {
	return &problem.Problem{Code: problem.InvalidRequest, Detail: "The body is not a valid schedule.", Errors: f}
}

// Bounds of the parameter after.
var (
	firstAfter = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	endOfAfter = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// afterFilters are the parameters of GET /v1/schedules/{id}.
var afterFilters = []filter[*time.Time]{{"after", "an RFC 3339 time from 2000-01-01T00:00:00Z to before 2100-01-01T00:00:00Z", func(to **time.Time, v string) bool {
	t, err := store.ParseTime(v)
	*to = &t
	return err == nil && !t.Before(firstAfter) && t.Before(endOfAfter)
}}}

// afterOf reads the parameter after; nil: it is not given.
func afterOf(x *exchange) (after *time.Time, err error) {
	if f := readFilters(x, afterFilters, &after); len(f) > 0 {
		return nil, request.InvalidParameters(f)
	}
	return after, nil
}

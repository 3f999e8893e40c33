package visibility

import (
	"slices"
	"time"

	"aiv/store"
)

// A Filter selects answers, the same for all brands. Empty members select all.
type Filter struct {
	From, To        *time.Time // of the run's creation: from inclusive, to exclusive
	Run             *store.ID
	Runs            []store.ID // any of them; nil: all
	Country         string     // of the run
	Language        string     // of the run
	MeasurementType string     // of the run
	Model           string
	Question        string
	Topic           string // of the question, as it is now
	Tag             string // of the question, as it is now
	Branded         *bool  // whether the question mentions an own brand that is active now
}

// needsQuestions reports whether the filter depends on the current state of questions.
func (f *Filter) needsQuestions() bool { return f.Topic != "" || f.Tag != "" || f.Branded != nil }

// ofJobs reports whether the filter may select some of the jobs of a run and not others.
func (f *Filter) ofJobs() bool { return f.Model != "" || f.Question != "" || f.needsQuestions() }

// accepts reports whether the filter selects a question.
func (f *Filter) accepts(id string, q *question) bool {
	if f.Question != "" && f.Question != id {
		return false
	}
	if !f.needsQuestions() {
		return true
	}
	return (f.Topic == "" || f.Topic == q.topic) && (f.Tag == "" || slices.Contains(q.tags, f.Tag)) && (f.Branded == nil || *f.Branded == q.branded)
}

// A question is the current state of a question.
type question struct {
	topic   string
	tags    []string
	branded bool
}

// A Dimension is a member of group_by.
type Dimension string

// The dimensions of groups. At most one of a grouping is of time or the run.
const (
	ByModel    Dimension = "model"
	ByQuestion Dimension = "question"
	ByTopic    Dimension = "topic"
	ByCountry  Dimension = "country"
	ByLanguage Dimension = "language"
	ByBranded  Dimension = "branded"
	ByRun      Dimension = "run"
	ByDay      Dimension = "day"
	ByWeek     Dimension = "week"
	ByMonth    Dimension = "month"
)

// Dimensions lists all dimensions.
var Dimensions = []Dimension{ByModel, ByQuestion, ByTopic, ByCountry, ByLanguage, ByBranded, ByRun, ByDay, ByWeek, ByMonth}

// OfTime reports whether the groups of a dimension are spans of time.
func (d Dimension) OfTime() bool { return d == ByDay || d == ByWeek || d == ByMonth }

// Member returns the name of the dimension's value in a row.
func (d Dimension) Member() string {
	switch d {
	case ByModel, ByQuestion, ByRun:
		return string(d) + "_id"
	}
	return string(d)
}

// A Query asks for metrics.
type Query struct {
	Filter
	Zone    *time.Location // of days, weeks and months; may be nil without these dimensions
	Brand   *store.ID      // the rows of one brand; nil: of all that are active
	GroupBy []Dimension
}

// MaxRows is the maximum number of rows of a response.
const MaxRows = 10_000

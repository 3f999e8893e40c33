package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"

	"aiv/gateway/problem"
	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/store"
)

// comparisonDocument is the response of GET /v1/metrics/compare.
type comparisonDocument struct {
	Current       sideDocument     `json:"current"`
	Baseline      sideDocument     `json:"baseline"`
	TimeZone      string           `json:"time_zone"`
	BrandRevision int64            `json:"brand_revision"` // of the account's brands, at which answers were matched
	Questions     int              `json:"questions"`      // that are compared
	AsOf          string           `json:"as_of"`
	Data          []changeDocument `json:"data"`
}

// sideDocument is one side of a comparison. Either RunID is set, or From and To are.
type sideDocument struct {
	RunID    *string      `json:"run_id"`
	From     *string      `json:"from"` // null, as To, with a run
	To       *string      `json:"to"`
	Answers  answerCounts `json:"answers"`
	Complete bool         `json:"complete"`
	Compared int64        `json:"compared"` // ok answers that are compared
	LeftOut  leftOut      `json:"left_out"`
}

// leftOut counts ok answers that are not compared.
type leftOut struct {
	NotMeasured  int64 `json:"not_measured"`  // the other side has no ok answer of the question and model
	ModelUnknown int64 `json:"model_unknown"` // the provider did not report the version of the model
	ModelChanged int64 `json:"model_changed"` // the other side has only other versions of the model
}

// changeDocument compares one brand. A rate that a tool does not ask for is left out; other clients get both.
type changeDocument struct {
	BrandID      string     `json:"brand_id"`
	BrandName    string     `json:"brand_name"`
	Kind         string     `json:"kind"`
	MentionRate  rateChange `json:"mention_rate,omitzero"`
	CitationRate rateChange `json:"citation_rate,omitzero"`
}

// rateChange compares one rate of a brand. Difference is null, and Reason says why, if the sides cannot be compared.
type rateChange struct {
	Current    rateDocument        `json:"current"`
	Baseline   rateDocument        `json:"baseline"`
	Difference *differenceDocument `json:"difference"`
	Verdict    string              `json:"verdict"` // up, down, no_clear_change or not_comparable
	Reason     *string             `json:"reason"`
	Moved      []movedQuestion     `json:"questions_moved"` // up to 20
}

// differenceDocument is current minus baseline, with its interval.
type differenceDocument struct {
	Value visibility.Decimal `json:"value"`
	Low   visibility.Decimal `json:"low"`
	High  visibility.Decimal `json:"high"`
}

// movedQuestion is a question whose rate differs between the sides.
type movedQuestion struct {
	QuestionID string             `json:"question_id"`
	Current    splitDocument      `json:"current"`
	Baseline   splitDocument      `json:"baseline"`
	Difference visibility.Decimal `json:"difference"`
}

// splitDocument counts, of a question's compared answers, how many mention or cite the brand.
type splitDocument struct {
	Count int64 `json:"count"`
	Of    int64 `json:"of"`
}

// comparisonQuery is what the parameters of GET /v1/metrics/compare say.
type comparisonQuery struct {
	visibility.Filter
	window
	run, baselineRun, brand *store.ID // nil: not given
}

func (q *comparisonQuery) filter() *visibility.Filter { return &q.Filter }

// comparisonFilters are the parameters of GET /v1/metrics/compare. Both sides have the same filters of answers.
var comparisonFilters = slices.Concat([]filter[comparisonQuery]{
	runFilter("run_id", func(q *comparisonQuery) **store.ID { return &q.run }),
	runFilter("baseline_run_id", func(q *comparisonQuery) **store.ID { return &q.baselineRun }),
	momentFilter("from", (*comparisonQuery).ofWindow),
	momentFilter("to", (*comparisonQuery).ofWindow),
	momentFilter("baseline_from", (*comparisonQuery).ofWindow),
	momentFilter("baseline_to", (*comparisonQuery).ofWindow),
	zoneFilter((*comparisonQuery).ofWindow),
}, answerFilters((*comparisonQuery).filter), []filter[comparisonQuery]{
	brandFilter(func(q *comparisonQuery) **store.ID { return &q.brand }),
})

// The parameters of the two forms of a comparison.
var (
	comparedRuns    = []string{"run_id", "baseline_run_id"}
	comparedWindows = []string{"from", "to", "baseline_from", "baseline_to"}
)

// readComparison responds with the change between two runs or two windows.
func (g *Gateway) readComparison(x *exchange, r *http.Request) error {
	q := comparisonQuery{window: window{zoneName: "UTC", zone: time.UTC}}
	// Dates are read in UTC unless the filters set another zone.
	faults := readFilters(x, comparisonFilters, &q)
	current, baseline := q.sides(x, &faults)
	if len(faults) > 0 {
		return invalidParameters(faults)
	}
	return g.measure(x, r, func(ctx context.Context, db store.Querier) (page, error) {
		c, err := visibility.ReadComparison(ctx, db, x.credential().AccountID, current, baseline)
		if err != nil {
			return page{}, err
		}
		d := newComparisonDocument(&q, c, current, baseline)
		for i := range d.Data {
			if !x.tool.shows("mention_rate") {
				d.Data[i].MentionRate = rateChange{} // not encoded
			}
			if !x.tool.shows("citation_rate") {
				d.Data[i].CitationRate = rateChange{}
			}
		}
		// A problem about a result that is too large has the number of rows.
		x.tool.setRows(len(d.Data))
		return page{body: wire.Encode(d)}, nil
	})
}

// sides returns the queries of both sides, and adds the faults of the parameters that name them.
func (q *comparisonQuery) sides(x *exchange, f *problem.Faults) (current, baseline *visibility.Query) {
	// With neither form, the faults are about the form of runs.
	form, other := comparedRuns, comparedWindows
	if slices.ContainsFunc(comparedWindows, x.given) && !slices.ContainsFunc(comparedRuns, x.given) {
		form, other = comparedWindows, comparedRuns
	}
	const forms = "give run_id and baseline_run_id, or from, to, baseline_from and baseline_to"
	for _, name := range form {
		if !x.given(name) {
			f.AddParameter(name, "is required: "+forms)
		}
	}
	for _, name := range other {
		if x.given(name) {
			f.AddParameter(name, "cannot be given with run_id or baseline_run_id")
		}
	}
	// Both sides start from the same filters, and get their own runs and times.
	now, before := q.Filter, q.Filter
	now.Run, before.Run = q.run, q.baselineRun
	if q.run != nil && q.baselineRun != nil && *q.run == *q.baselineRun {
		f.AddParameter("baseline_run_id", "must be another run than run_id")
	}
	now.From, now.To = q.span("from", "to", f)
	before.From, before.To = q.span("baseline_from", "baseline_to", f)
	if overlap(&now, &before) {
		f.AddParameter("baseline_from", "the two windows must not overlap")
	}
	query := func(f visibility.Filter) *visibility.Query {
		return &visibility.Query{Filter: f, Zone: q.zone, Brand: q.brand}
	}
	return query(now), query(before)
}

// overlap reports whether two windows have an instant in common. A window that lacks an end, or ends before it begins,
// overlaps no other.
func overlap(a, b *visibility.Filter) bool {
	if a.From == nil || a.To == nil || b.From == nil || b.To == nil {
		return false
	}
	return a.From.Before(*a.To) && b.From.Before(*b.To) && a.From.Before(*b.To) && b.From.Before(*a.To)
}

// newComparisonDocument returns a document with one row for each brand that was compared.
func newComparisonDocument(
	q *comparisonQuery, c *visibility.Comparison, current, baseline *visibility.Query,
) comparisonDocument {
	d := comparisonDocument{
		Current: newSideDocument(&c.Current, &current.Filter), Baseline: newSideDocument(&c.Baseline, &baseline.Filter),
		TimeZone: q.zoneName, BrandRevision: c.Revision, Questions: c.Questions, AsOf: store.FormatTime(c.AsOf),
		Data: []changeDocument{},
	}
	for i := range c.Rows {
		row := &c.Rows[i]
		d.Data = append(d.Data, changeDocument{
			BrandID: row.Brand.ID.Text("brand"), BrandName: row.Brand.Name, Kind: row.Brand.Kind,
			MentionRate: newRateChange(&row.MentionRate), CitationRate: newRateChange(&row.CitationRate),
		})
	}
	return d
}

func newSideDocument(s *visibility.Side, f *visibility.Filter) sideDocument {
	return sideDocument{
		RunID: idOrNull("run", f.Run), From: store.FormatTimeOrNil(f.From), To: store.FormatTimeOrNil(f.To),
		Answers: newAnswerCounts(s.Answers), Complete: s.Answers.Complete(), Compared: s.Compared, LeftOut: leftOut(s.LeftOut),
	}
}

// newRateChange returns the wire form of a compared rate. Lists are never null.
func newRateChange(c *visibility.RateChange) rateChange {
	d := rateChange{
		Current: newRateDocument(&c.Current), Baseline: newRateDocument(&c.Baseline), Verdict: c.Verdict,
		Reason: textOrNil(c.Reason), Moved: []movedQuestion{},
	}
	if c.Difference != nil {
		d.Difference = new(differenceDocument(*c.Difference))
	}
	for _, m := range c.Moved {
		d.Moved = append(d.Moved, movedQuestion{
			m.Question, splitDocument{m.Current.Count, m.Current.Of},
			splitDocument{m.Baseline.Count, m.Baseline.Of}, m.Difference,
		})
	}
	return d
}

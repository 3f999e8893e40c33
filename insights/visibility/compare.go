package visibility

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"aiv/insights/brands"
)

// A Comparison is the change between two sides, over the answers that both have measured in the same way.
type Comparison struct {
	Revision          int64 // of the account's brands
	Current, Baseline Side
	Questions         int       // of the basket
	AsOf              time.Time // the time of the snapshot
	Rows              []Change
}

// A Side describes one side of a comparison.
type Side struct {
	Answers  Answers
	Compared int64 // ok answers in the basket
	LeftOut  LeftOut
}

// LeftOut counts the ok answers without comparable answers on the other side, by the first reason that applies.
type LeftOut struct {
	NotMeasured  int64 // the other side has no ok answer of the question, model, country, language and measurement type
	ModelUnknown int64 // the served model was not reported
	ModelChanged int64 // the other side's answers were served by other models
}

// A Change compares one brand.
type Change struct {
	Brand                     *brands.Brand
	MentionRate, CitationRate RateChange
}

// A RateChange compares one rate of both sides.
type RateChange struct {
	Current, Baseline Rate
	Difference        *Difference // nil: not comparable
	Verdict, Reason   string
	Moved             []Moved
}

// Moved is a question whose rate changed. The rates are of this question alone.
type Moved struct {
	Question          string
	Current, Baseline Share
	Difference        Decimal
	difference        float64 // unrounded, for the order
}

// maxMoved is the maximum number of questions that a rate lists.
const maxMoved = 20

// A measured identifies what an answer measured. The answers of two sides are compared if it is equal.
type measured struct{ question, model, country, language, measured string }

// A served is the reported version of a model, without its date. It may be empty; known is false if none was reported.
type served struct {
	model string
	known bool
}

// A side collects the ok answers of one side, by what was measured and by the served model.
type side struct {
	grouping *grouping // for the brands and the filter
	found    map[measured]map[served]*sideSum
	answers  Answers // of all models; zero in the side of one
}

// A sideSum sums ok answers.
type sideSum struct {
	ok, known int32
	brands    []brandSum // by the index of the active brand
}

func newSide(g *grouping) *side {
	return &side{grouping: g, found: make(map[measured]map[served]*sideSum)}
}

// add adds the ok answers of a cell of a run.
func (s *side) add(r *run, c *cell) {
	if c.ok == 0 {
		return
	}
	// The number of a cell is model number × questions + question number.
	key := measured{r.questions[int(c.no)%len(r.questions)], r.models[int(c.no)/len(r.questions)], r.country, r.language, r.measured}
	var by served
	if c.version != nil {
		by = served{servedModel(*c.version), true}
	}
	if s.found[key] == nil {
		s.found[key] = make(map[served]*sideSum)
	}
	// Answers of one question by several served models have separate sums, because only equal models are compared.
	sum := s.found[key][by]
	if sum == nil {
		sum = &sideSum{brands: make([]brandSum, len(s.grouping.brands))}
		s.found[key][by] = sum
	}
	sum.ok += c.ok
	sum.known += c.known
	for i := range c.brands {
		if at := s.grouping.index.of(c.brands[i].brand); at >= 0 {
			sum.brands[at].mentioned += c.brands[i].mentioned
			sum.brands[at].cited += c.brands[i].cited
		}
	}
}

// servedModel returns a model's version without one date at its end.
func servedModel(version string) string {
	for _, length := range []int{len("-2026-03-05"), len("-20260305")} {
		at := len(version) - length
		if at < 0 || version[at] != '-' && version[at] != '@' {
			continue
		}
		if isDate(version[at+1:]) {
			return version[:at]
		}
	}
	return version
}

// isDate reports whether a text is 2026-03-05 or 20260305: a year of this century, a month to 12 and a day to 31.
func isDate(text string) bool {
	if len(text) == 10 {
		if text[4] != '-' || text[7] != '-' {
			return false
		}
		text = text[:4] + text[5:7] + text[8:]
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	month, day := text[4:6], text[6:8]
	return text[:2] == "20" && month >= "01" && month <= "12" && day >= "01" && day <= "31"
}

// basket returns the sums that the other side has too, by question, and counts the answers that it leaves out.
func (s *side) basket(other *side) (map[string][]*sideSum, Side) {
	of := Side{Answers: s.answers}
	chosen := make(map[string][]*sideSum) // by question
	for key, versions := range s.found {
		for by, sum := range versions {
			n := int64(sum.ok)
			// The order of the cases is the order in which reasons apply.
			switch {
			case other.found[key] == nil:
				of.LeftOut.NotMeasured += n
			case !by.known:
				of.LeftOut.ModelUnknown += n
			case other.found[key][by] == nil:
				of.LeftOut.ModelChanged += n
			default:
				of.Compared += n
				chosen[key.question] = append(chosen[key.question], sum)
			}
		}
	}
	return chosen, of
}

// compare returns the comparison of two sides.
func compare(current, baseline *side) *Comparison {
	c := &Comparison{}
	var now, before map[string][]*sideSum
	now, c.Current = current.basket(baseline)
	before, c.Baseline = baseline.basket(current)
	// A question is in the basket of one side only if the other side has a comparable answer.
	questions := slices.Sorted(maps.Keys(now)) // the same on both sides
	c.Questions = len(questions)
	g := current.grouping
	shown := g.rowBrands()
	for i := range shown {
		at := g.index.of(shown[i].Number)
		// The citation rate is over answers with known sources, the mention rate over all ok answers.
		mention := func(s *sideSum) split { return split{s.brands[at].mentioned, s.ok} }
		citation := func(s *sideSum) split { return split{s.brands[at].cited, s.known} }
		c.Rows = append(c.Rows, Change{
			Brand:        &shown[i],
			MentionRate:  newRateChange(questions, now, before, mention, NoAnswers),
			CitationRate: newRateChange(questions, now, before, citation, NoSources),
		})
	}
	return c
}

// newRateChange compares one rate over the questions. of takes what the rate counts from a sum; reason says why a
// side has no value.
func newRateChange(questions []string, now, before map[string][]*sideSum, of func(*sideSum) split, reason string) RateChange {
	current, baseline := splits(questions, now, of), splits(questions, before, of)
	c := RateChange{Current: newRate(current, reason), Baseline: newRate(baseline, reason), Verdict: NotComparable, Reason: reason, Moved: []Moved{}}
	if c.Current.Of == 0 || c.Baseline.Of == 0 {
		return c
	}
	d, verdict := difference(&c.Current, &c.Baseline)
	// The reason is only for rates that cannot be compared.
	c.Difference, c.Verdict, c.Reason = &d, verdict, ""
	for i, question := range questions {
		a, b := current[i], baseline[i]
		if a.of == 0 || b.of == 0 {
			continue
		}
		// The numerator and denominator of the difference, which is exact until it is rounded.
		numerator, denominator := int64(a.count)*int64(b.of)-int64(b.count)*int64(a.of), int64(a.of)*int64(b.of)
		if numerator == 0 {
			continue
		}
		c.Moved = append(c.Moved, Moved{
			Question: question, Current: newShare(int64(a.count), int64(a.of), ""), Baseline: newShare(int64(b.count), int64(b.of), ""),
			Difference: Ratio(numerator, denominator), difference: float64(numerator) / float64(denominator),
		})
	}
	// The largest changes come first, whatever their direction.
	slices.SortFunc(c.Moved, func(a, b Moved) int {
		return cmp.Or(cmp.Compare(math.Abs(b.difference), math.Abs(a.difference)), cmp.Compare(a.Question, b.Question))
	})
	c.Moved = c.Moved[:min(len(c.Moved), maxMoved)]
	return c
}

// splits adds up the sums of each question, which differ in model, country, language, measurement type or served model.
func splits(questions []string, sums map[string][]*sideSum, of func(*sideSum) split) []split {
	all := make([]split, len(questions))
	for i, question := range questions {
		for _, sum := range sums[question] {
			s := of(sum)
			all[i].count, all[i].of = all[i].count+s.count, all[i].of+s.of
		}
	}
	return all
}

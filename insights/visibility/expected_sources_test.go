package visibility_test

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// sources returns what ReadSources must return.
func (w *world) sources(q *visibility.SourceQuery) *visibility.Sources {
	all, ok := w.selected(&q.Filter)
	type key struct {
		host, page string
		owner      int32 // 0: no active brand
	}
	type citing struct {
		pages             int
		answers           map[*wroteJob]bool
		models, questions map[string]bool
		created           []time.Time
	}
	found, pages := make(map[key]*citing), 0
	for _, j := range ok {
		if q.Gap && !w.isGap(j) {
			continue
		}
		for _, p := range j.facts.Pages {
			pages++
			if p.Host == "" {
				continue
			}
			k := key{host: p.Host}
			if w.brandOf(p.Owner) != nil {
				k.owner = p.Owner
			}
			if q.ByPage {
				k.page = p.Key
			}
			c := found[k]
			if c == nil {
				c = &citing{answers: make(map[*wroteJob]bool), models: make(map[string]bool), questions: make(map[string]bool)}
				found[k] = c
			}
			c.pages++
			c.answers[j], c.models[j.model], c.questions[j.question] = true, true, true
			c.created = append(c.created, j.run.created)
		}
	}
	s := &visibility.Sources{Answers: w.answerCounts(all), Rows: []visibility.SourceRow{}}
	for k, c := range found {
		row := visibility.SourceRow{Host: k.host, Page: k.page, Owner: "other", Answers: int64(len(c.answers)),
			CitationShare: shareOf(c.pages, pages, "no_citations"), Models: len(c.models), Questions: len(c.questions),
			First: slices.MinFunc(c.created, time.Time.Compare), Last: slices.MaxFunc(c.created, time.Time.Compare)}
		if b := w.brandOf(k.owner); b != nil {
			row.Owner, row.Brand = b.Kind, &b.ID
		}
		if (q.Owner == "" || q.Owner == row.Owner) && (q.Brand == nil || row.Brand != nil && *q.Brand == *row.Brand) {
			s.Rows = append(s.Rows, row)
		}
	}
	last := func(brand *store.ID) string {
		if brand == nil {
			return "none" // after all brands
		}
		return brand.Text("brand")
	}
	slices.SortFunc(s.Rows, func(a, b visibility.SourceRow) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), strings.Compare(a.Host, b.Host), strings.Compare(a.Page, b.Page),
			strings.Compare(last(a.Brand), last(b.Brand)))
	})
	return s
}

// brandOf returns the active brand with a number.
func (w *world) brandOf(number int32) *brands.Brand {
	for i := range w.active {
		if w.active[i].Number == number {
			return &w.active[i]
		}
	}
	return nil
}

// isGap reports whether an answer mentions a competitor and no own brand.
func (w *world) isGap(j *wroteJob) bool {
	kinds := make(map[string]bool)
	for _, b := range j.facts.Brands {
		if of := w.brandOf(b.Brand); of != nil && b.Mentions > 0 {
			kinds[of.Kind] = true
		}
	}
	return kinds[brands.Competitor] && !kinds[brands.Own]
}

// A measured is what must be equal on both sides, but the served model.
type measured struct{ question, model, country, language, measured string }

func (j *wroteJob) measured() measured {
	return measured{j.question, j.model, j.run.country, j.run.language, j.run.measured}
}

// comparison returns what ReadComparison must return, but the time.
func (w *world) comparison(current, baseline *visibility.Query) *visibility.Comparison {
	c := &visibility.Comparison{Revision: w.revision}
	nowAll, now := w.selected(&current.Filter)
	beforeAll, before := w.selected(&baseline.Filter)
	nowCompared, beforeCompared := basket(now, before, &c.Current), basket(before, now, &c.Baseline)
	c.Current.Answers, c.Baseline.Answers = w.answerCounts(nowAll), w.answerCounts(beforeAll)
	questions := make(map[string]bool)
	for _, j := range nowCompared {
		questions[j.question] = true
	}
	c.Questions = len(questions)
	for _, b := range w.brandsByName(current.Brand) {
		c.Rows = append(c.Rows, visibility.Change{Brand: b,
			MentionRate:  changeOf(mentions(b, nowCompared), mentions(b, beforeCompared), "no_answers"),
			CitationRate: changeOf(citations(b, nowCompared), citations(b, beforeCompared), "no_sources")})
	}
	return c
}

// basket returns the answers of a side that the other side has, too, and counts the others by the first reason that
// holds.
func basket(ok, other []*wroteJob, side *visibility.Side) (compared []*wroteJob) {
	same := func(of *wroteJob, andModel bool) bool {
		return slices.ContainsFunc(other, func(j *wroteJob) bool {
			return j.measured() == of.measured() && (!andModel || j.version != nil && j.served() == of.served())
		})
	}
	for _, j := range ok {
		switch {
		case !same(j, false):
			side.LeftOut.NotMeasured++
		case j.version == nil:
			side.LeftOut.ModelUnknown++
		case !same(j, true):
			side.LeftOut.ModelChanged++
		default:
			side.Compared++
			compared = append(compared, j)
		}
	}
	return compared
}

func changeOf(now, before tally, reason string) visibility.RateChange {
	current, baseline := now.rate(reason), before.rate(reason)
	c := visibility.RateChange{Current: current.Rate, Baseline: baseline.Rate, Moved: []visibility.Moved{}}
	c.Verdict, c.Reason = "not_comparable", reason
	if current.Of == 0 || baseline.Of == 0 {
		return c
	}
	p1, p2 := big.NewRat(current.Count, current.Of), big.NewRat(baseline.Count, baseline.Of)
	f1, _ := p1.Float64()
	f2, _ := p2.Float64()
	low := f1 - f2 - math.Sqrt((f1-current.low)*(f1-current.low)+(baseline.high-f2)*(baseline.high-f2))
	high := f1 - f2 + math.Sqrt((current.high-f1)*(current.high-f1)+(f2-baseline.low)*(f2-baseline.low))
	difference := decimal(new(big.Rat).Sub(p1, p2))
	c.Difference, c.Reason = &visibility.Difference{Value: *difference, Low: roundFloat(low), High: roundFloat(high)}, ""
	switch {
	case low > 0:
		c.Verdict = "up"
	case high < 0:
		c.Verdict = "down"
	default:
		c.Verdict = "no_clear_change"
	}
	by := make(map[string]*big.Rat)
	for id, a := range now {
		b := before[id]
		if b == nil {
			continue
		}
		by[id] = new(big.Rat).Sub(big.NewRat(int64(a.count), int64(a.of)), big.NewRat(int64(b.count), int64(b.of)))
		if by[id].Sign() != 0 {
			c.Moved = append(c.Moved, visibility.Moved{Question: id, Difference: *decimal(by[id]),
				Current: shareOf(a.count, a.of, ""), Baseline: shareOf(b.count, b.of, "")})
		}
	}
	slices.SortFunc(c.Moved, func(a, b visibility.Moved) int {
		x, y := new(big.Rat).Abs(by[a.Question]), new(big.Rat).Abs(by[b.Question])
		return cmp.Or(y.Cmp(x), strings.Compare(a.Question, b.Question))
	})
	c.Moved = c.Moved[:min(len(c.Moved), 20)]
	return c
}

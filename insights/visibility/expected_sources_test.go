package visibility_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// A sourceRow is a row of sources. Brand is "none" if no active brand owns it, which comes last.
type sourceRow struct {
	Host, Page, Owner, Brand string
	Answers                  int64
	Share                    number
	Models, Questions        int
	First, Last              time.Time
}

const noBrand = "none"

// sources returns what ReadSources must return.
func (w *world) sources(q *visibility.SourceQuery) (visibility.Answers, []sourceRow) {
	all, ok := w.selected(&q.Filter)
	type key struct{ host, page, brand string }
	type citing struct {
		answers, pages    int
		models, questions map[string]bool
		first, last       time.Time
	}
	found, pages := make(map[key]*citing), 0
	for _, j := range ok {
		if q.Gap && !w.isGap(j) {
			continue
		}
		seen := make(map[key]bool)
		for _, p := range j.facts.Pages {
			pages++
			if p.Host == "" {
				continue
			}
			k := key{host: p.Host, brand: noBrand}
			if b := w.brandOf(p.Owner); b != nil {
				k.brand = b.ID.Text("brand")
			}
			if q.ByPage {
				k.page = p.Key
			}
			c := found[k]
			if c == nil {
				c = &citing{models: make(map[string]bool), questions: make(map[string]bool), first: j.run.created, last: j.run.created}
				found[k] = c
			}
			if c.pages++; !seen[k] {
				seen[k] = true
				c.answers++
			}
			c.models[j.model], c.questions[j.question] = true, true
			if j.run.created.Before(c.first) {
				c.first = j.run.created
			}
			if j.run.created.After(c.last) {
				c.last = j.run.created
			}
		}
	}
	rows := []sourceRow{}
	for k, c := range found {
		row := sourceRow{Host: k.host, Page: k.page, Owner: "other", Brand: k.brand, Answers: int64(c.answers), Share: shareOf(c.pages, pages, "no_citations"),
			Models: len(c.models), Questions: len(c.questions), First: c.first.UTC(), Last: c.last.UTC()}
		for _, b := range w.active {
			if b.ID.Text("brand") == k.brand {
				row.Owner = b.Kind
			}
		}
		if (q.Owner == "" || q.Owner == row.Owner) && (q.Brand == nil || q.Brand.Text("brand") == row.Brand) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b sourceRow) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), strings.Compare(a.Host, b.Host), strings.Compare(a.Page, b.Page), strings.Compare(a.Brand, b.Brand))
	})
	return w.answerCounts(all), rows
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
	competitors, own := 0, 0
	for _, b := range j.facts.Brands {
		switch of := w.brandOf(b.Brand); {
		case of == nil || b.Mentions == 0:
		case of.Kind == brands.Own:
			own++
		default:
			competitors++
		}
	}
	return competitors > 0 && own == 0
}

// readSources returns what ReadSources returns.
func (s *site) readSources(t testing.TB, account store.ID, q *visibility.SourceQuery) (visibility.Answers, []sourceRow) {
	t.Helper()
	got, err := visibility.ReadSources(t.Context(), s.pool, account, q)
	must(t, err)
	rows := []sourceRow{}
	for _, r := range got.Rows {
		row := sourceRow{Host: r.Host, Page: r.Page, Owner: r.Owner, Brand: noBrand, Answers: r.Answers, Share: shareNumber(&r.CitationShare),
			Models: r.Models, Questions: r.Questions, First: r.First.UTC(), Last: r.Last.UTC()}
		if r.Brand != nil {
			row.Brand = r.Brand.Text("brand")
		}
		rows = append(rows, row)
	}
	return got.Answers, rows
}

// A comparison is what ReadComparison returns, but the time.
type comparison struct {
	Revision          int64
	Current, Baseline visibility.Side
	Questions         int
	Rows              []comparisonRow
}

type comparisonRow struct {
	Brand, Name, Kind string
	Mention, Citation rateChange
}

type rateChange struct {
	Current, Baseline number
	Value             string // of the difference; "" if the rates are not comparable
	Low, High         float64
	Verdict, Reason   string
	Moved             []string
}

// A measured is what must be equal on both sides, but the served model.
type measured struct{ question, model, country, language, measured string }

func (j *wroteJob) measured() measured {
	return measured{j.question, j.model, j.run.country, j.run.language, j.run.measured}
}

// comparison returns what ReadComparison must return.
func (w *world) comparison(current, baseline *visibility.Query) comparison {
	nowAll, now := w.selected(&current.Filter)
	beforeAll, before := w.selected(&baseline.Filter)
	c := comparison{Revision: w.revision}
	nowCompared, side := basket(now, before)
	c.Current = side
	beforeCompared, side := basket(before, now)
	c.Baseline = side
	c.Current.Answers, c.Baseline.Answers = w.answerCounts(nowAll), w.answerCounts(beforeAll)
	questions := make(map[string]bool)
	for _, j := range nowCompared {
		questions[j.question] = true
	}
	c.Questions = len(questions)
	for _, b := range w.brandsByName(current.Brand) {
		a, z := w.row(b, nowCompared), w.row(b, beforeCompared)
		mentions := func(j *wroteJob) (of, yes bool) { return true, j.facts.of(b).Mentions > 0 }
		cites := func(j *wroteJob) (of, yes bool) { return j.facts.Known, j.facts.of(b).Citations > 0 }
		c.Rows = append(c.Rows, comparisonRow{b.ID.Text("brand"), b.Name, b.Kind,
			changeOf(a.MentionRate, z.MentionRate, "no_answers", nowCompared, beforeCompared, mentions),
			changeOf(a.CitationRate, z.CitationRate, "no_sources", nowCompared, beforeCompared, cites)})
	}
	return c
}

// basket returns the answers of a side that the other side has, too, and counts the others by the first reason that
// holds.
func basket(ok, other []*wroteJob) (compared []*wroteJob, side visibility.Side) {
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
	return compared, side
}

func changeOf(current, baseline number, reason string, now, before []*wroteJob, of func(*wroteJob) (of, yes bool)) rateChange {
	c := rateChange{Current: current, Baseline: baseline, Verdict: "not_comparable", Reason: reason}
	if current.Of == 0 || baseline.Of == 0 {
		return c
	}
	p1, p2 := big.NewRat(current.Count, current.Of), big.NewRat(baseline.Count, baseline.Of)
	d := new(big.Rat).Sub(p1, p2)
	c.Value, c.Reason = text(d), ""
	f1, _ := p1.Float64()
	f2, _ := p2.Float64()
	c.Low = f1 - f2 - math.Sqrt((f1-current.Low)*(f1-current.Low)+(baseline.High-f2)*(baseline.High-f2))
	c.High = f1 - f2 + math.Sqrt((current.High-f1)*(current.High-f1)+(f2-baseline.Low)*(f2-baseline.Low))
	switch {
	case c.Low > 0:
		c.Verdict = "up"
	case c.High < 0:
		c.Verdict = "down"
	default:
		c.Verdict = "no_clear_change"
	}

	tallies := [2]tally{{}, {}}
	for side, all := range [][]*wroteJob{now, before} {
		for _, j := range all {
			if in, yes := of(j); in {
				tallies[side].add(j.question, yes)
			}
		}
	}
	type moved struct {
		text string
		by   *big.Rat
		id   string
	}
	var list []moved
	for id, a := range tallies[0] {
		b := tallies[1][id]
		if b == nil {
			continue
		}
		by := new(big.Rat).Sub(big.NewRat(int64(a.count), int64(a.of)), big.NewRat(int64(b.count), int64(b.of)))
		if by.Sign() != 0 {
			list = append(list, moved{fmt.Sprintf("%s %d of %d, %d of %d: %s", id, a.count, a.of, b.count, b.of, text(by)), by.Abs(new(big.Rat).Set(by)), id})
		}
	}
	slices.SortFunc(list, func(a, b moved) int { return cmp.Or(b.by.Cmp(a.by), strings.Compare(a.id, b.id)) })
	for _, m := range list[:min(len(list), 20)] {
		c.Moved = append(c.Moved, m.text)
	}
	return c
}

// readComparison returns what ReadComparison returns.
func (s *site) readComparison(t testing.TB, account store.ID, current, baseline *visibility.Query) comparison {
	t.Helper()
	got, err := visibility.ReadComparison(t.Context(), s.pool, account, current, baseline)
	must(t, err)
	c := comparison{Revision: got.Revision, Current: got.Current, Baseline: got.Baseline, Questions: got.Questions}
	change := func(of *visibility.RateChange) rateChange {
		r := rateChange{Current: numberOf(&of.Current), Baseline: numberOf(&of.Baseline), Verdict: of.Verdict, Reason: of.Reason}
		if d := of.Difference; d != nil {
			r.Value, r.Low, r.High = d.Value.String(), float64(d.Low)/10_000, float64(d.High)/10_000
		}
		for _, m := range of.Moved {
			r.Moved = append(r.Moved, fmt.Sprintf("%s %d of %d, %d of %d: %s", m.Question, m.Current.Count, m.Current.Of, m.Baseline.Count, m.Baseline.Of, m.Difference))
		}
		return r
	}
	for _, r := range got.Rows {
		c.Rows = append(c.Rows, comparisonRow{r.Brand.ID.Text("brand"), r.Brand.Name, r.Brand.Kind, change(&r.MentionRate), change(&r.CitationRate)})
	}
	return c
}

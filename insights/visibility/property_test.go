package visibility_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
	"aiv/store/storetest"
)

// TestReadsEqualRecomputation: in random states of random accounts, what is read equals a computation from the answers
// one by one.
func TestReadsEqualRecomputation(t *testing.T) {
	t.Parallel()
	worlds, phases, queries := 3, 3, 8
	if storetest.Long() {
		worlds, phases, queries = 40, 8, 50
	}
	first := rand.Uint64()
	for n := range worlds {
		seed := first + uint64(n)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
			for range w.r.IntN(5) {
				w.changeBrands(t)
			}
			for range 3 + w.r.IntN(4) {
				w.addRun(t)
			}
			for phase := range phases {
				w.step(t)
				w.deleteAnswers(t) // whose facts may have the current revision
				for range queries {
					w.checkMetrics(t)
					w.checkSources(t)
					w.checkComparison(t)
					w.checkFacts(t)
				}
				must(t, w.counter.FindUncounted(t.Context()))
				w.verify(t)
				if t.Failed() {
					t.Fatal("phase ", phase)
				}
			}
		})
	}
}

// TestBrandedQuestions: competitors take what they mention in a question, as they do in an answer.
func TestBrandedQuestions(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 1)
	s.createBrand(t, brands.Own, "Kovalt")
	s.createBrand(t, brands.Competitor, "Kovalt Cloud")
	for text, want := range map[string]int64{"Is Kovalt good?": 1, "Is Kovalt Cloud good?": 0} {
		s.exec(t, `UPDATE questions SET text = $1`, text)
		m := s.readMetrics(t, &visibility.Query{Filter: visibility.Filter{Branded: new(true)}})
		storetest.Equal(t, want, m.Answers.Pending, "answers to branded questions: ", text)
	}
}

// step changes the world in several ways.
func (w *world) step(t *testing.T) {
	t.Helper()
	for _, of := range []struct {
		tenths int
		do     func(*testing.T)
	}{{8, w.work}, {5, w.changeBrands}, {3, w.recount}, {3, w.deleteAnswers}, {2, w.changeQuestions}, {5, w.work}, {1, w.cancel}, {2, w.addRun},
		{4, func(t *testing.T) { must(t, merge(t, w.counter)) }}, {2, w.changeBrands}, {3, w.recount}} {
		if w.r.IntN(10) < of.tenths {
			of.do(t)
		}
	}
}

// filter returns a random filter. Some of its values select nothing.
func (w *world) filter() (f visibility.Filter) {
	sometimes := func() bool { return w.r.IntN(8) == 0 }
	moment := func() *time.Time {
		t := pick(w.r, w.runs).created
		if w.r.IntN(2) == 0 {
			t = time.Date(t.Year(), t.Month(), t.Day()-1+w.r.IntN(3), 0, 0, 0, 0, pick(w.r, zones))
		}
		return &t
	}
	if sometimes() {
		f.From = moment()
	}
	if sometimes() {
		if f.To = moment(); f.From != nil && !f.From.Before(*f.To) {
			f.From = nil
		}
	}
	if sometimes() {
		f.Run = new(pick(w.r, []store.ID{pick(w.r, w.runs).id, pick(w.r, w.runs).id, store.NewID()}))
	}
	for _, text := range []struct {
		to   *string
		from []string
	}{{&f.Country, countries}, {&f.Language, languages}, {&f.MeasurementType, []string{"grounded", "closed_book"}}, {&f.Model, []string{"m1", "m2", "m4"}},
		{&f.Question, questionIDs}, {&f.Topic, []string{"crm", "prices", "own topic", "none"}}, {&f.Tag, tags}} {
		if sometimes() {
			*text.to = pick(w.r, text.from)
		}
	}
	if sometimes() {
		f.Branded = w.someBool()
	}
	return f
}

var zones = []*time.Location{time.UTC, zone("Europe/Rome"), zone("America/New_York"), zone("Africa/Cairo"), zone("Asia/Kathmandu"), zone("Pacific/Kiritimati")}

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return z
}

// query returns a random query.
func (w *world) query() *visibility.Query {
	q := &visibility.Query{Filter: w.filter(), Zone: pick(w.r, zones), Brand: w.someBrand()}
	exclusive := []visibility.Dimension{visibility.ByRun, visibility.ByDay, visibility.ByWeek, visibility.ByMonth}
	dimensions := slices.DeleteFunc(slices.Clone(visibility.Dimensions), func(d visibility.Dimension) bool { return slices.Contains(exclusive, d) })
	dimensions = append(dimensions, pick(w.r, exclusive))
	w.r.Shuffle(len(dimensions), func(i, j int) { dimensions[i], dimensions[j] = dimensions[j], dimensions[i] })
	// Groups by time are rare among the first three of so many dimensions; half of the queries have one.
	if at := slices.IndexFunc(dimensions, visibility.Dimension.OfTime); at > 0 && w.r.IntN(2) == 0 {
		dimensions[0], dimensions[at] = dimensions[at], dimensions[0]
	}
	if w.r.IntN(4) > 0 {
		q.GroupBy = dimensions[:w.r.IntN(4)]
	}
	return q
}

// someBrand returns an active brand, one that is unknown, or nil.
func (w *world) someBrand() *store.ID {
	switch n := w.r.IntN(16); {
	case n == 0:
		return new(store.NewID())
	case n < 4 && len(w.active) > 0:
		return new(pick(w.r, w.active).ID)
	}
	return nil
}

func (w *world) someBool() *bool { return new(w.r.IntN(2) == 0) }

// compare reports how what was read of a query differs from what it must be. It does not compare the times of reads.
func compare(t *testing.T, query, want, got any) {
	t.Helper()
	diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(visibility.Rate{}), cmpopts.IgnoreFields(visibility.Metrics{}, "AsOf"))
	if diff != "" {
		text, _ := json.Marshal(query)
		t.Errorf("%T %s (-want +got):\n%s", query, text, diff)
	}
}

// checkMetrics compares the metrics of a random query.
func (w *world) checkMetrics(t *testing.T) {
	t.Helper()
	q := w.query()
	if want := w.metrics(q); len(want.Rows) <= visibility.MaxRows {
		compare(t, q, want, w.readMetrics(t, q))
	}
}

// checkSources compares the sources of a random query.
func (w *world) checkSources(t *testing.T) {
	t.Helper()
	q := &visibility.SourceQuery{Filter: w.filter(), ByPage: w.r.IntN(2) == 0, Gap: w.r.IntN(3) == 0, Brand: w.someBrand()}
	if w.r.IntN(4) == 0 {
		q.Owner = pick(w.r, []string{"own", "competitor", "other"})
	}
	got, err := visibility.ReadSources(t.Context(), w.pool, w.account, q)
	must(t, err)
	compare(t, q, w.sources(q), got)
}

// checkComparison compares what two sides of a comparison count, and the rates of what they have in common. The
// verdicts are tested by numbers_test.go.
func (w *world) checkComparison(t *testing.T) {
	t.Helper()
	current := visibility.Query{Filter: w.filter(), Zone: time.UTC, Brand: w.someBrand()}
	current.From, current.To, current.Run = nil, nil, nil
	baseline := current
	if w.r.IntN(2) == 0 {
		current.Run, baseline.Run = &pick(w.r, w.runs).id, &pick(w.r, w.runs).id
	} else {
		middle := pick(w.r, w.runs).created
		current.From, current.To = &middle, new(middle.AddDate(0, 0, 1+w.r.IntN(30)))
		baseline.From, baseline.To = new(middle.AddDate(0, 0, -1-w.r.IntN(30))), &middle
	}
	nowAll, now := w.selected(&current.Filter)
	beforeAll, before := w.selected(&baseline.Filter)
	var sides [2]visibility.Side
	nowSame, beforeSame := basket(now, before, &sides[0]), basket(before, now, &sides[1])
	sides[0].Answers, sides[1].Answers = w.answerCounts(nowAll), w.answerCounts(beforeAll)
	var want, rates []visibility.Rate
	for _, b := range w.brandsByName(current.Brand) {
		want = append(want, mentions(b, nowSame).rate("no_answers"), mentions(b, beforeSame).rate("no_answers"),
			citations(b, nowSame).rate("no_sources"), citations(b, beforeSame).rate("no_sources"))
	}
	got, err := visibility.ReadComparison(t.Context(), w.pool, w.account, &current, &baseline)
	must(t, err)
	for _, row := range got.Rows {
		rates = append(rates, row.MentionRate.Current, row.MentionRate.Baseline, row.CitationRate.Current, row.CitationRate.Baseline)
	}
	queries := []visibility.Query{current, baseline}
	compare(t, queries, sides, [2]visibility.Side{got.Current, got.Baseline})
	compare(t, queries, want, rates)
	compare(t, queries, len(values(nowSame, (*wroteJob).ofQuestion)), got.Questions)
}

// basket returns the answers of a side that the other side has, too, and counts the others by the first reason that
// holds.
func basket(ok, other []*wroteJob, side *visibility.Side) (compared []*wroteJob) {
	measured := func(j *wroteJob) [5]string {
		return [5]string{j.question, j.model, j.run.country, j.run.language, j.run.measured}
	}
	dated := regexp.MustCompile(`^(?s)(.*)[-@](20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])|20\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))$`)
	served := func(j *wroteJob) string { return dated.ReplaceAllString(orLast(j.version), "$1") }
	for _, j := range ok {
		isSame := func(o *wroteJob) bool { return measured(o) == measured(j) }
		isServed := func(o *wroteJob) bool { return isSame(o) && served(o) == served(j) }
		switch {
		case !slices.ContainsFunc(other, isSame):
			side.LeftOut.NotMeasured++
		case j.version == nil:
			side.LeftOut.ModelUnknown++
		case !slices.ContainsFunc(other, isServed):
			side.LeftOut.ModelChanged++
		default:
			side.Compared++
			compared = append(compared, j)
		}
	}
	return compared
}

// checkFacts compares what the results of a run show, and which of them a choice by brand selects.
func (w *world) checkFacts(t *testing.T) {
	t.Helper()
	run := pick(w.r, w.runs)
	want := make(map[int32]visibility.Fact)
	for _, j := range run.jobs {
		if w.status(j) == "ok" {
			f := j.facts.Fact
			f.Brands = slices.DeleteFunc(slices.Clone(f.Brands), func(b visibility.BrandFact) bool {
				return w.brandOf(b.Brand) == nil
			})
			want[j.ordinal] = f
		}
	}
	got, active, err := visibility.ReadFacts(t.Context(), w.pool, w.account, run.id, 1, int32(len(run.jobs)))
	must(t, err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("facts of %s (-want +got):\n%s", run.id.Text("run"), diff)
	}

	if len(active) == 0 {
		return
	}
	brand := pick(w.r, active)
	choice := visibility.Choice{Brand: brand.ID}
	if w.r.IntN(2) == 0 {
		choice.Mentioned = w.someBool()
	}
	if choice.Mentioned == nil || w.r.IntN(2) == 0 {
		choice.Cited = w.someBool()
	}
	var wantOrdinals, gotOrdinals []int32
	for _, j := range run.jobs {
		if w.status(j) != "ok" {
			continue
		}
		b := j.facts.of(&brand)
		if (choice.Mentioned == nil || *choice.Mentioned == (b.Mentions > 0)) &&
			(choice.Cited == nil || j.facts.Known && *choice.Cited == (b.Citations > 0)) {
			wantOrdinals = append(wantOrdinals, j.ordinal)
		}
	}
	for step, after, more := 1+w.r.IntN(5), int32(0), true; more; {
		page, err := visibility.Choose(t.Context(), w.pool, w.account, run.id, choice, after, step)
		must(t, err)
		gotOrdinals = append(gotOrdinals, page...)
		if more = len(page) == step; more {
			after = page[step-1]
		}
	}
	compare(t, choice, wantOrdinals, gotOrdinals)
}

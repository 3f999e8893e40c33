package visibility_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/visibility"
	"aiv/store"
	"aiv/store/storetest"
)

// TestReadsEqualRecomputation: in random states of random accounts, what is read equals a computation from the answers
// one by one.
func TestReadsEqualRecomputation(t *testing.T) {
	t.Parallel()
	worlds, phases, queries := 3, 3, 6
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
				for range queries {
					w.checkMetrics(t)
					w.checkSources(t)
					w.checkComparison(t)
					w.checkFacts(t)
				}
				if t.Failed() {
					t.Fatal("phase ", phase)
				}
			}
			must(t, w.counter.FindUncounted(t.Context()))
			w.verify(t)
		})
	}
}

// step changes the world in several ways.
func (w *world) step(t *testing.T) {
	t.Helper()
	for _, of := range []struct {
		tenths int
		do     func(*testing.T)
	}{{8, w.work}, {5, w.changeBrands}, {3, w.recount}, {3, w.deleteAnswers}, {2, w.changeQuestions}, {5, w.work}, {1, w.cancel}, {2, w.addRun},
		{4, w.merge}, {2, w.changeBrands}, {3, w.recount}} {
		if w.r.IntN(10) < of.tenths {
			of.do(t)
		}
	}
}

func (w *world) merge(t *testing.T) {
	t.Helper()
	_, err := w.counter.Merge(t.Context())
	must(t, err)
}

// compareFloats compares limits that are rounded with limits that are not.
var compareFloats = cmp.Comparer(sameNumbers)

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
		{&f.Question, w.questionIDs()}, {&f.Topic, []string{"crm", "prices", "own topic", "none"}}, {&f.Tag, tags}} {
		if sometimes() {
			*text.to = pick(w.r, text.from)
		}
	}
	if sometimes() {
		f.Branded = new(w.r.IntN(2) == 0)
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
	q := &visibility.Query{Filter: w.filter(), Zone: pick(w.r, zones)}
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

// checkMetrics compares the metrics of a random query, and those of queries that differ in rows only.
func (w *world) checkMetrics(t *testing.T) {
	t.Helper()
	q := w.query()
	want := w.metrics(q)
	if len(want.Rows) > visibility.MaxRows {
		return
	}
	got := w.readMetrics(t, w.account, q)
	if diff := cmp.Diff(want, got, compareFloats); diff != "" {
		t.Errorf("%s (-want +got):\n%s", describeQuery(q), diff)
		return
	}

	if len(w.active) > 0 { // brand_id chooses rows, and changes no number
		one := *q
		one.Brand = new(pick(w.r, w.active).ID)
		want := got
		want.Rows = nil
		for _, row := range got.Rows {
			if row.Brand == one.Brand.Text("brand") {
				want.Rows = append(want.Rows, row)
			}
		}
		if diff := cmp.Diff(want, w.readMetrics(t, w.account, &one)); diff != "" {
			t.Errorf("%s, rows of %s (-want +got):\n%s", describeQuery(q), one.Brand.Text("brand"), diff)
		}
	}

	// Each answer is in one group.
	total := *q
	total.GroupBy = nil
	sums := make(map[string][]int64)
	for _, row := range got.Rows {
		sums[row.Brand] = addTo(sums[row.Brand], row.counts())
	}
	wantSums := make(map[string][]int64)
	for _, row := range w.readMetrics(t, w.account, &total).Rows {
		if len(got.Rows) > 0 {
			wantSums[row.Brand] = row.counts()
		} else if row.MentionRate.Of != 0 {
			t.Errorf("%s: no rows of %d answers", describeQuery(q), row.MentionRate.Of)
		}
	}
	if diff := cmp.Diff(wantSums, sums); diff != "" {
		t.Errorf("%s: sums over the groups (-total +got):\n%s", describeQuery(q), diff)
	}

	// The order of the groups is that of group_by, their numbers are not.
	reversed := *q
	reversed.GroupBy = slices.Clone(q.GroupBy)
	slices.Reverse(reversed.GroupBy)
	byGroup := func(m metricsResult, backwards bool) map[string]metricsRow {
		rows := make(map[string]metricsRow)
		for _, row := range m.Rows {
			if row.Group = slices.Clone(row.Group); backwards {
				slices.Reverse(row.Group)
			}
			rows[fmt.Sprintf("%q %s", row.Group, row.Brand)] = row
		}
		return rows
	}
	if diff := cmp.Diff(byGroup(got, false), byGroup(w.readMetrics(t, w.account, &reversed), true)); diff != "" {
		t.Errorf("%s, groups reversed (-want +got):\n%s", describeQuery(q), diff)
	}
}

// counts returns the numbers of a row that can be added.
func (r *metricsRow) counts() []int64 {
	counts := []int64{r.Mentions}
	for _, n := range []number{r.MentionRate, r.CitationRate, r.FirstRate, r.ShareOfVoice, r.CitationShare, r.Position} {
		counts = append(counts, n.Count, n.Of)
	}
	return counts
}

func addTo(sums, more []int64) []int64 {
	if sums == nil {
		return more
	}
	for i := range more {
		sums[i] += more[i]
	}
	return sums
}

func describeQuery(q *visibility.Query) string {
	return fmt.Sprintf("%s zone %s group by %q", describeFilter(&q.Filter), q.Zone, q.GroupBy)
}

func describeFilter(f *visibility.Filter) string {
	set := make(map[string]any)
	for name, v := range map[string]string{"country": f.Country, "language": f.Language, "type": f.MeasurementType, "model": f.Model, "question": f.Question,
		"topic": f.Topic, "tag": f.Tag} {
		if v != "" {
			set[name] = v
		}
	}
	if f.From != nil {
		set["from"] = f.From
	}
	if f.To != nil {
		set["to"] = f.To
	}
	if f.Run != nil {
		set["run"] = f.Run.Text("run")
	}
	if f.Branded != nil {
		set["branded"] = *f.Branded
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(set)) {
		text += fmt.Sprintf("%s=%v ", name, set[name])
	}
	return text
}

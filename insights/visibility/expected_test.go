package visibility_test

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// What metrics must be, computed from the jobs one by one by the words of the methodology, with exact fractions.

// selects reports whether a filter selects a job.
func (w *world) selects(f *visibility.Filter, j *wroteJob) bool {
	q := w.catalog[j.question]
	return (f.From == nil || !j.run.created.Before(*f.From)) && (f.To == nil || j.run.created.Before(*f.To)) &&
		(f.Run == nil || *f.Run == j.run.id) && (f.Country == "" || f.Country == j.run.country) &&
		(f.Language == "" || f.Language == j.run.language) && (f.MeasurementType == "" || f.MeasurementType == j.run.measured) &&
		(f.Model == "" || f.Model == j.model) && (f.Question == "" || f.Question == j.question) &&
		(f.Topic == "" || f.Topic == q.Topic) && (f.Tag == "" || slices.Contains(q.Tags, f.Tag)) &&
		(f.Branded == nil || *f.Branded == w.isBranded(j.question))
}

func (w *world) isBranded(question string) bool {
	found := w.matcher.Question(w.catalog[question].Text)
	return found.Branded()
}

// selected returns the jobs that a filter selects, and those of them that are counted.
func (w *world) selected(f *visibility.Filter) (all, ok []*wroteJob) {
	w.eachJob(func(j *wroteJob) {
		if w.selects(f, j) {
			all = append(all, j)
			if w.status(j) == "ok" {
				ok = append(ok, j)
			}
		}
	})
	return all, ok
}

// answerCounts counts jobs by status.
func (w *world) answerCounts(all []*wroteJob) (a visibility.Answers) {
	counts := map[string]*int64{"ok": &a.OK, "empty": &a.Empty, "truncated": &a.Truncated, "failed": &a.Failed,
		"canceled": &a.Canceled, "pending": &a.Pending, "recounting": &a.Recounting}
	for _, j := range all {
		status := w.status(j)
		*counts[status]++
		if status == "ok" && j.facts.revision < w.revision {
			a.Frozen++
		}
	}
	return a
}

// decimal returns a number with four decimals, rounded half away from zero.
func decimal(r *big.Rat) *visibility.Decimal {
	n, _ := strconv.ParseInt(new(big.Rat).Mul(r, big.NewRat(10_000, 1)).FloatString(0), 10, 64)
	return new(visibility.Decimal(n))
}

func roundFloat(x float64) visibility.Decimal { return visibility.Decimal(math.Round(x * 10_000)) }

func shareOf(count, of int, reason string) visibility.Share {
	s := visibility.Share{Count: int64(count), Of: int64(of), Reason: reason}
	if of > 0 {
		s.Value, s.Reason = decimal(big.NewRat(s.Count, s.Of)), ""
	}
	return s
}

// A tally counts answers by question.
type tally map[string]*struct{ count, of int }

func (t tally) add(question string, yes bool) {
	if t[question] == nil {
		t[question] = &struct{ count, of int }{}
	}
	t[question].of++
	if yes {
		t[question].count++
	}
}

// An interval is a rate with limits that are not rounded.
type interval struct {
	visibility.Rate
	low, high float64
}

// rate returns Wilson's interval on the effective sample size.
func (t tally) rate(reason string) (r interval) {
	count, of := 0, 0
	for _, q := range t {
		count, of = count+q.count, of+q.of
	}
	r.Share, r.LowSample = shareOf(count, of, reason), true
	if of == 0 {
		return r
	}
	p, k, e := big.NewRat(r.Count, r.Of), int64(len(t)), big.NewRat(r.Of, 1)
	variance := new(big.Rat)
	for _, q := range t {
		part := big.NewRat(int64(q.of), r.Of)
		d := new(big.Rat).Sub(big.NewRat(int64(q.count), int64(q.of)), p)
		part.Mul(part, part).Mul(part, d.Mul(d, d))
		variance.Add(variance, part)
	}
	if k > 1 && variance.Sign() > 0 && count > 0 && count < of {
		variance.Mul(variance, big.NewRat(k, k-1))
		independent := new(big.Rat).Sub(big.NewRat(1, 1), p)
		independent.Mul(independent, p).Quo(independent, variance)
		if independent.Cmp(e) < 0 {
			e = independent
		}
	}
	size, _ := e.Float64()
	share, _ := p.Float64()
	const z = 1.959963984540054
	root := z * math.Sqrt(share*(1-share)/size+z*z/(4*size*size))
	r.low, r.high = (share+z*z/(2*size)-root)/(1+z*z/size), (share+z*z/(2*size)+root)/(1+z*z/size)
	if count == 0 {
		r.low = 0
	}
	if count == of {
		r.high = 1
	}
	r.Effective, r.Low, r.High = decimal(e), new(roundFloat(r.low)), new(roundFloat(r.high))
	r.LowSample = r.high-r.low > 0.30
	return r
}

// metrics returns what ReadMetrics must return, but the time.
func (w *world) metrics(q *visibility.Query) *visibility.Metrics {
	all, ok := w.selected(&q.Filter)
	m := &visibility.Metrics{Revision: w.revision, Answers: w.answerCounts(all), Models: servedModels(ok)}
	m.Rows = []visibility.Row{}
	questions, runs, versions := make(map[string]bool), make(map[store.ID]bool), make(map[string]bool)
	for _, j := range ok {
		questions[j.question], runs[j.run.id], versions[j.run.method] = true, true, true
	}
	m.Questions, m.Runs, m.Versions = len(questions), len(runs), slices.Sorted(maps.Keys(versions))
	for _, group := range w.groups(q, all) {
		isOther := func(j *wroteJob) bool { return !slices.Equal(w.groupOf(q, j), group) }
		ofGroup := slices.DeleteFunc(slices.Clone(ok), isOther)
		for _, b := range w.brandsByName(q.Brand) {
			row := w.row(b, ofGroup)
			row.Group = group
			m.Rows = append(m.Rows, row)
		}
	}
	return m
}

// brandsByName returns the active brands or one of them.
func (w *world) brandsByName(only *store.ID) (list []*brands.Brand) {
	for i := range w.active {
		if only == nil || w.active[i].ID == *only {
			list = append(list, &w.active[i])
		}
	}
	slices.SortFunc(list, func(a, b *brands.Brand) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID.Text("brand"), b.ID.Text("brand")))
	})
	return list
}

// mentions tallies which answers mention a brand.
func mentions(b *brands.Brand, ok []*wroteJob) tally {
	t := tally{}
	for _, j := range ok {
		t.add(j.question, j.facts.of(b).Mentions > 0)
	}
	return t
}

// citations tallies which answers cite a brand, of those whose sources are known.
func citations(b *brands.Brand, ok []*wroteJob) tally {
	t := tally{}
	for _, j := range ok {
		if j.facts.Known {
			t.add(j.question, j.facts.of(b).Citations > 0)
		}
	}
	return t
}

// row computes the numbers of a brand from ok answers.
func (w *world) row(b *brands.Brand, ok []*wroteJob) visibility.Row {
	row, first := visibility.Row{Brand: b}, tally{}
	var mentioned, voices, pages, allPages, positions int
	for _, j := range ok {
		of := j.facts.of(b)
		if of.Mentions > 0 {
			first.add(j.question, of.Position == 1)
			mentioned++
			positions += int(of.Position)
		}
		for i := range w.active {
			if j.facts.of(&w.active[i]).Mentions > 0 {
				voices++
			}
		}
		row.Mentions += int64(of.Mentions)
		allPages += len(j.facts.Pages)
		for _, p := range j.facts.Pages {
			if p.Owner == b.Number {
				pages++
			}
		}
	}
	row.MentionRate, row.CitationRate = mentions(b, ok).rate("no_answers").Rate, citations(b, ok).rate("no_sources").Rate
	row.FirstRate, row.ShareOfVoice = first.rate("no_mentions").Rate, shareOf(mentioned, voices, "no_mentions")
	if !slices.ContainsFunc(w.active, func(b brands.Brand) bool { return b.Kind == brands.Competitor }) {
		row.ShareOfVoice.Value, row.ShareOfVoice.Reason = nil, "no_competitors"
	}
	row.CitationShare, row.Position = shareOf(pages, allPages, "no_citations"), shareOf(positions, mentioned, "no_mentions")
	return row
}

// groups returns the groups of jobs in order, with the buckets of time that have none.
func (w *world) groups(q *visibility.Query, all []*wroteJob) (groups [][]string) {
	for _, j := range all {
		groups = append(groups, w.groupOf(q, j))
	}
	if len(q.GroupBy) == 0 {
		groups = append(groups, []string{})
	}
	at := slices.IndexFunc(q.GroupBy, func(d visibility.Dimension) bool { return d == "day" || d == "week" || d == "month" })
	if at >= 0 && (len(all) > 0 || q.From != nil && q.To != nil) {
		others := distinct(slices.Clone(groups))
		if len(q.GroupBy) == 1 {
			others = [][]string{{""}}
		}
		for _, bucket := range w.buckets(q, q.GroupBy[at], all) {
			for _, other := range others {
				group := slices.Clone(other)
				group[at] = bucket
				groups = append(groups, group)
			}
		}
	}
	return distinct(groups)
}

func distinct(groups [][]string) [][]string {
	slices.SortFunc(groups, slices.Compare[[]string])
	return slices.CompactFunc(groups, slices.Equal[[]string])
}

func (w *world) groupOf(q *visibility.Query, j *wroteJob) []string {
	group := make([]string, len(q.GroupBy))
	for i, d := range q.GroupBy {
		switch d {
		case "model":
			group[i] = j.model
		case "question":
			group[i] = j.question
		case "topic":
			group[i] = w.catalog[j.question].Topic
		case "country":
			group[i] = j.run.country
		case "language":
			group[i] = j.run.language
		case "branded":
			group[i] = strconv.FormatBool(w.isBranded(j.question))
		case "run":
			group[i] = j.run.id.Text("run")
		default:
			group[i] = bucket(j.run.created, d, q.Zone)
		}
	}
	return group
}

// bucket returns the first date of the bucket of a time.
func bucket(t time.Time, by visibility.Dimension, zone *time.Location) string {
	y, m, d := t.In(zone).Date()
	day := time.Date(y, m, d, 12, 0, 0, 0, time.UTC)
	switch by {
	case "month":
		day = time.Date(y, m, 1, 12, 0, 0, 0, time.UTC)
	case "week":
		for day.Weekday() != time.Monday {
			day = day.AddDate(0, 0, -1)
		}
	}
	return day.Format(time.DateOnly)
}

// buckets returns the buckets that overlap the window: hour by hour, as no bucket is shorter than that.
func (w *world) buckets(q *visibility.Query, by visibility.Dimension, all []*wroteJob) (found []string) {
	var times []time.Time
	for _, j := range all {
		times = append(times, j.run.created)
	}
	if q.From != nil {
		times = append(times, *q.From)
	}
	if q.To != nil {
		times = append(times, q.To.Add(-1))
	}
	from, to := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	for t := from; t.Before(to); t = t.Add(time.Hour) {
		found = append(found, bucket(t, by, q.Zone))
	}
	found = append(found, bucket(to, by, q.Zone))
	slices.Sort(found)
	return slices.Compact(found)
}

// servedModels counts answers by model and served version, most first, no version last.
func servedModels(ok []*wroteJob) []visibility.Served {
	list := []visibility.Served{}
	for _, j := range ok {
		at := slices.IndexFunc(list, func(s visibility.Served) bool {
			return s.Model == j.model && orLast(s.Version) == orLast(j.version)
		})
		if at < 0 {
			at, list = len(list), append(list, visibility.Served{Model: j.model, Version: j.version})
		}
		list[at].Answers++
	}
	slices.SortFunc(list, func(a, b visibility.Served) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), strings.Compare(a.Model, b.Model),
			strings.Compare(orLast(a.Version), orLast(b.Version)))
	})
	return list[:min(len(list), 50)]
}

// orLast returns a text, or one that is behind all others.
func orLast(text *string) string {
	if text == nil {
		return "\xff"
	}
	return *text
}

// datedVersion matches the version of a model that ends with a date.
var datedVersion = regexp.MustCompile(`^(?s)(.*)[-@](20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])|20\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))$`)

// served returns the served model of an answer that reported one, else "".
func (j *wroteJob) served() string {
	if j.version == nil {
		return ""
	}
	return datedVersion.ReplaceAllString(*j.version, "$1")
}

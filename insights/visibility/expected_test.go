package visibility_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// What reads must return, computed from the jobs one by one by the words of the methodology.

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
	return w.matcher.Question(w.catalog[question].Text).Branded()
}

// selected returns the jobs that a filter selects, and, of these, the counted ones.
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
		*counts[w.status(j)]++
		if w.status(j) == "ok" && j.facts.revision < w.revision {
			a.Frozen++
		}
	}
	return a
}

// A tally counts answers by question: how many there are, and how many of them have what is counted.
type tally map[string]struct{ count, of int }

func tallyOf(answers []*wroteJob, isOne, counts func(*wroteJob) bool) tally {
	t := tally{}
	for _, j := range answers {
		if q := t[j.question]; isOne(j) {
			q.of++
			if counts(j) {
				q.count++
			}
			t[j.question] = q
		}
	}
	return t
}

// rate returns the rate over the questions. The table of the methodology has the formulas: numbers_test.go.
func (t tally) rate(reason string) visibility.Rate {
	var splits []visibility.Split
	for _, q := range t {
		splits = append(splits, visibility.NewSplit(q.count, q.of))
	}
	return visibility.NewRate(splits, reason)
}

func shareOf(count, of int, reason string) visibility.Share {
	return visibility.NewShare(int64(count), int64(of), reason)
}

// metrics returns what ReadMetrics must return, but the time.
func (w *world) metrics(q *visibility.Query) *visibility.Metrics {
	all, ok := w.selected(&q.Filter)
	m := &visibility.Metrics{Revision: w.revision, Answers: w.answerCounts(all), Models: servedModels(ok)}
	m.Rows = []visibility.Row{}
	m.Questions, m.Runs = len(values(ok, (*wroteJob).ofQuestion)), len(values(ok, (*wroteJob).ofRun))
	m.Versions = values(ok, func(j *wroteJob) string { return j.run.method })
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

// values returns the different values that jobs have, sorted.
func values(of []*wroteJob, value func(*wroteJob) string) (all []string) {
	for _, j := range of {
		all = append(all, value(j))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (j *wroteJob) ofModel() string    { return j.model }
func (j *wroteJob) ofQuestion() string { return j.question }
func (j *wroteJob) ofRun() string      { return j.run.id.Text("run") }

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
	return tallyOf(ok, func(*wroteJob) bool { return true }, func(j *wroteJob) bool { return j.facts.of(b).Mentions > 0 })
}

// citations tallies which answers cite a brand, of those whose sources are known.
func citations(b *brands.Brand, ok []*wroteJob) tally {
	return tallyOf(ok, func(j *wroteJob) bool { return j.facts.Known }, func(j *wroteJob) bool { return j.facts.of(b).Citations > 0 })
}

// row computes the numbers of a brand from ok answers.
func (w *world) row(b *brands.Brand, ok []*wroteJob) visibility.Row {
	row := visibility.Row{Brand: b}
	var voices, pages, allPages, positions int
	for _, j := range ok {
		of := j.facts.of(b)
		positions += int(of.Position)
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
	mentioning := func(j *wroteJob) bool { return j.facts.of(b).Mentions > 0 }
	first := tallyOf(ok, mentioning, func(j *wroteJob) bool { return j.facts.of(b).Position == 1 })
	row.MentionRate, row.CitationRate = mentions(b, ok).rate("no_answers"), citations(b, ok).rate("no_sources")
	row.FirstRate = first.rate("no_mentions")
	mentioned := int(row.MentionRate.Count)
	row.ShareOfVoice = shareOf(mentioned, voices, "no_mentions")
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
				groups = append(groups, slices.Concat(other[:at], []string{bucket}, other[at+1:]))
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
			group[i] = j.ofRun()
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
	return append(found, bucket(to, by, q.Zone))
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

// sources returns what ReadSources must return.
func (w *world) sources(q *visibility.SourceQuery) *visibility.Sources {
	all, ok := w.selected(&q.Filter)
	type key struct {
		host, page string
		owner      int32 // 0: no active brand
	}
	found, pages := make(map[key][]*wroteJob), 0 // a job for each of its pages
	for _, j := range ok {
		if q.Gap && !w.isGap(j) {
			continue
		}
		pages += len(j.facts.Pages)
		for _, p := range j.facts.Pages {
			k := key{host: p.Host}
			if w.brandOf(p.Owner) != nil {
				k.owner = p.Owner
			}
			if q.ByPage {
				k.page = p.Key
			}
			if p.Host != "" {
				found[k] = append(found[k], j)
			}
		}
	}
	s := &visibility.Sources{Answers: w.answerCounts(all), Rows: []visibility.SourceRow{}}
	earlier := func(a, b *wroteJob) int { return a.run.created.Compare(b.run.created) }
	for k, c := range found {
		answers := values(c, func(j *wroteJob) string { return fmt.Sprint(j.ofRun(), j.ordinal) })
		row := visibility.SourceRow{Host: k.host, Page: k.page, Owner: "other", Answers: int64(len(answers)),
			CitationShare: shareOf(len(c), pages, "no_citations"), Models: len(values(c, (*wroteJob).ofModel)),
			Questions: len(values(c, (*wroteJob).ofQuestion)), First: slices.MinFunc(c, earlier).run.created,
			Last: slices.MaxFunc(c, earlier).run.created}
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

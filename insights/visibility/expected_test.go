package visibility_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	for _, j := range all {
		switch w.status(j) {
		case "ok":
			a.OK++
			if j.facts.revision < w.revision {
				a.Frozen++
			}
		case "empty":
			a.Empty++
		case "truncated":
			a.Truncated++
		case "failed":
			a.Failed++
		case "canceled":
			a.Canceled++
		case "pending":
			a.Pending++
		case "recounting":
			a.Recounting++
		}
	}
	return a
}

// A number is a rate or a share. Low and High are not rounded.
type number struct {
	Value, Effective, Reason string
	Count, Of                int64
	Low, High                float64
	LowSample                bool
}

// sameNumbers accepts limits that are rounded to four decimals.
func sameNumbers(a, b float64) bool { return math.Abs(a-b) <= 0.00005+1e-9 }

func shareOf(count, of int, reason string) number {
	n := number{Count: int64(count), Of: int64(of), Reason: reason}
	if of > 0 {
		n.Value, n.Reason = text(big.NewRat(n.Count, n.Of)), ""
	}
	return n
}

// text returns a number with four decimals, rounded half away from zero, without zeros at the end.
func text(r *big.Rat) string {
	s := strings.TrimRight(strings.TrimRight(r.FloatString(4), "0"), ".")
	if s == "-0" {
		return "0"
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

// rate returns Wilson's interval on the effective sample size.
func (t tally) rate(reason string) number {
	count, of := 0, 0
	for _, q := range t {
		count, of = count+q.count, of+q.of
	}
	n := shareOf(count, of, reason)
	n.LowSample = true
	if of == 0 {
		return n
	}
	p, k, e := big.NewRat(n.Count, n.Of), int64(len(t)), big.NewRat(n.Of, 1)
	variance := new(big.Rat)
	for _, q := range t {
		part := big.NewRat(int64(q.of), n.Of)
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
	n.Effective = text(e)
	size, _ := e.Float64()
	share, _ := p.Float64()
	const z = 1.959963984540054
	root := z * math.Sqrt(share*(1-share)/size+z*z/(4*size*size))
	n.Low, n.High = (share+z*z/(2*size)-root)/(1+z*z/size), (share+z*z/(2*size)+root)/(1+z*z/size)
	if count == 0 {
		n.Low = 0
	}
	if count == of {
		n.High = 1
	}
	n.LowSample = n.High-n.Low > 0.30
	return n
}

// A metricsRow is a row of metrics.
type metricsRow struct {
	Group                                                                       []string
	Brand, Name, Kind                                                           string
	Mentions                                                                    int64
	MentionRate, CitationRate, FirstRate, ShareOfVoice, CitationShare, Position number
}

// A metricsResult is what ReadMetrics returns, but the time.
type metricsResult struct {
	Revision        int64
	Answers         visibility.Answers
	Complete        bool
	Questions, Runs int
	Versions        []string
	Models          []string // model, version or "null", answers
	Rows            []metricsRow
}

// metrics returns what ReadMetrics must return.
func (w *world) metrics(q *visibility.Query) metricsResult {
	all, ok := w.selected(&q.Filter)
	m := metricsResult{Revision: w.revision, Answers: w.answerCounts(all)}
	m.Complete = !slices.ContainsFunc(all, func(j *wroteJob) bool { s := w.status(j); return s == "pending" || s == "recounting" })
	questions, runs, versions := make(map[string]bool), make(map[store.ID]bool), make(map[string]bool)
	for _, j := range ok {
		questions[j.question], runs[j.run.id], versions[j.run.method] = true, true, true
	}
	m.Questions, m.Runs, m.Models = len(questions), len(runs), servedModels(ok)
	for v := range versions {
		m.Versions = append(m.Versions, v)
	}
	slices.Sort(m.Versions)
	for _, group := range w.groups(q, all) {
		var of []*wroteJob
		for _, j := range ok {
			if slices.Equal(w.groupOf(q, j), group) {
				of = append(of, j)
			}
		}
		for _, b := range w.brandsByName(q.Brand) {
			row := w.row(b, of)
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

// row computes the numbers of a brand from ok answers.
func (w *world) row(b *brands.Brand, ok []*wroteJob) metricsRow {
	row := metricsRow{Brand: b.ID.Text("brand"), Name: b.Name, Kind: b.Kind}
	mention, citation, first := tally{}, tally{}, tally{}
	var mentioned, voices, pages, allPages, positions int
	competitors := slices.ContainsFunc(w.active, func(b brands.Brand) bool { return b.Kind == brands.Competitor })
	for _, j := range ok {
		of := j.facts.of(b)
		mention.add(j.question, of.Mentions > 0)
		if j.facts.Known {
			citation.add(j.question, of.Citations > 0)
		}
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
	row.MentionRate, row.CitationRate, row.FirstRate = mention.rate("no_answers"), citation.rate("no_sources"), first.rate("no_mentions")
	row.ShareOfVoice = shareOf(mentioned, voices, "no_mentions")
	if !competitors {
		row.ShareOfVoice.Value, row.ShareOfVoice.Reason = "", "no_competitors"
	}
	row.CitationShare, row.Position = shareOf(pages, allPages, "no_citations"), shareOf(positions, mentioned, "no_mentions")
	return row
}

// groups returns the groups of jobs in order, with the buckets of time that have none.
func (w *world) groups(q *visibility.Query, all []*wroteJob) [][]string {
	found := make(map[string][]string)
	add := func(group []string) { found[strings.Join(group, "\x00")] = group }
	for _, j := range all {
		add(w.groupOf(q, j))
	}
	if len(q.GroupBy) == 0 {
		add([]string{})
	}
	at := slices.IndexFunc(q.GroupBy, func(d visibility.Dimension) bool { return d == "day" || d == "week" || d == "month" })
	if at >= 0 && (len(all) > 0 || q.From != nil && q.To != nil) {
		others := [][]string{}
		for _, group := range found {
			others = append(others, group)
		}
		if len(q.GroupBy) == 1 {
			others = append(others, []string{""})
		}
		for _, bucket := range w.buckets(q, q.GroupBy[at], all) {
			for _, other := range others {
				group := slices.Clone(other)
				group[at] = bucket
				add(group)
			}
		}
	}
	groups := [][]string{}
	for _, group := range found {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, slices.Compare[[]string])
	return groups
}

func (w *world) groupOf(q *visibility.Query, j *wroteJob) []string {
	group := []string{}
	for _, d := range q.GroupBy {
		switch d {
		case "model":
			group = append(group, j.model)
		case "question":
			group = append(group, j.question)
		case "topic":
			group = append(group, w.catalog[j.question].Topic)
		case "country":
			group = append(group, j.run.country)
		case "language":
			group = append(group, j.run.language)
		case "branded":
			group = append(group, map[bool]string{false: "false", true: "true"}[w.isBranded(j.question)])
		case "run":
			group = append(group, j.run.id.Text("run"))
		default:
			group = append(group, bucket(j.run.created, d, q.Zone))
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
func (w *world) buckets(q *visibility.Query, by visibility.Dimension, all []*wroteJob) []string {
	var from, to time.Time
	for i, j := range all {
		if t := j.run.created; i == 0 || t.Before(from) {
			from = t
		}
		if t := j.run.created; i == 0 || t.After(to) {
			to = t
		}
	}
	if q.From != nil {
		from = *q.From
	}
	if q.To != nil {
		to = q.To.Add(-1)
	}
	found := []string{}
	for t := from; t.Before(to); t = t.Add(time.Hour) {
		found = append(found, bucket(t, by, q.Zone))
	}
	found = append(found, bucket(to, by, q.Zone))
	slices.Sort(found)
	return slices.Compact(found)
}

// servedModels counts answers by model and served version, most first.
func servedModels(ok []*wroteJob) (list []string) {
	type served struct{ model, version string }
	counts := make(map[served]int)
	for _, j := range ok {
		key := served{j.model, "\xff"} // after all others
		if j.version != nil {
			key.version = *j.version
		}
		counts[key]++
	}
	var keys []served
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b served) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a.model, b.model), strings.Compare(a.version, b.version))
	})
	for _, key := range keys[:min(len(keys), 50)] {
		list = append(list, describeServed(key.model, key.version, counts[key]))
	}
	return list
}

// datedVersion matches the version of a model that ends with a date.
var datedVersion = regexp.MustCompile(`^(?s)(.*)[-@](20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])|20\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))$`)

// served returns the served model of an answer that reported one, else "".
func (j *wroteJob) served() string {
	if j.version == nil {
		return ""
	}
	if m := datedVersion.FindStringSubmatch(*j.version); m != nil {
		return m[1]
	}
	return *j.version
}

// The results of reads, in the form in which they are expected.

func describeServed(model, version string, answers int) string {
	if version == "\xff" {
		version = "null"
	}
	return fmt.Sprint(model, " ", version, " ", answers)
}

// readMetrics returns what ReadMetrics returns.
func (s *site) readMetrics(t testing.TB, account store.ID, q *visibility.Query) metricsResult {
	t.Helper()
	got, err := visibility.ReadMetrics(t.Context(), s.pool, account, q)
	must(t, err)
	m := metricsResult{Revision: got.Revision, Answers: got.Answers, Complete: got.Answers.Complete(), Questions: got.Questions, Runs: got.Runs, Versions: got.Versions}
	for _, served := range got.Models {
		version := "\xff"
		if served.Version != nil {
			version = *served.Version
		}
		m.Models = append(m.Models, describeServed(served.Model, version, int(served.Answers)))
	}
	for _, r := range got.Rows {
		m.Rows = append(m.Rows, metricsRow{
			Group: r.Group, Brand: r.Brand.ID.Text("brand"), Name: r.Brand.Name, Kind: r.Brand.Kind, Mentions: r.Mentions,
			MentionRate: numberOf(&r.MentionRate), CitationRate: numberOf(&r.CitationRate), FirstRate: numberOf(&r.FirstRate),
			ShareOfVoice: shareNumber(&r.ShareOfVoice), CitationShare: shareNumber(&r.CitationShare), Position: shareNumber(&r.Position),
		})
	}
	return m
}

func shareNumber(s *visibility.Share) number {
	n := number{Count: s.Count, Of: s.Of, Reason: s.Reason}
	if s.Value != nil {
		n.Value = s.Value.String()
	}
	return n
}

func numberOf(r *visibility.Rate) number {
	n := shareNumber(&r.Share)
	n.LowSample = r.LowSample
	if r.Value != nil {
		n.Effective, n.Low, n.High = r.Effective.String(), float64(*r.Low)/10_000, float64(*r.High)/10_000
	}
	return n
}

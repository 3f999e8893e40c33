package visibility_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
)

// A world is a site with random runs, and what is known of each of their jobs without package visibility: answers are
// matched one by one, and kept with the revision at which they were matched.
type world struct {
	*site
	r        *rand.Rand
	held     []jobs.Job      // claimed and not settled
	made     []*brands.Brand // by their index in brandPool
	runs     []*wroteRun
	active   []brands.Brand // by name and id
	revision int64
	matcher  *match.Matcher
	catalog  map[string]catalog.Question
}

// A wroteRun is a run and its jobs in their order.
type wroteRun struct {
	runSpec
	id       store.ID
	older    bool // some of its jobs are settled by a release that keeps no facts
	canceled bool
	jobs     []*wroteJob
}

// A wroteJob is what must be known of a job.
type wroteJob struct {
	run             *wroteRun
	model, question string
	ordinal         int32
	ended           bool            // with an answer or an error
	failed          bool            // with an error
	stored          *answers.Answer // nil: none, or deleted
	version         *string
	facts           *wroteFact // nil: not counted yet
	gone            bool       // the answer was deleted after it was counted
}

// A wroteFact is what an answer showed at a revision.
type wroteFact struct {
	visibility.Fact
	revision int64
}

// of returns what the answer showed of a brand.
func (f *wroteFact) of(b *brands.Brand) (of visibility.BrandFact) {
	if i := slices.IndexFunc(f.Brands, func(of visibility.BrandFact) bool { return of.Brand == b.Number }); i >= 0 {
		of = f.Brands[i]
	}
	return of
}

// The texts of which brands, questions and answers are made. Brand n has the texts of row n only, so that brands never
// conflict.
var (
	brandPool = []struct {
		kind                      string
		names, domains, exclusion []string
	}{
		{brands.Own, []string{"Kovalt", "Kovalt CRM", "Kovalto"}, []string{"kovalt.com", "github.com/kovalt"}, []string{"Kovalt Street"}},
		{brands.Competitor, []string{"Ostrel", "Ostrel Cloud"}, []string{"ostrel.io", "g3r.com/ostrel"}, nil},
		{brands.Competitor, []string{"Halden", "Halden GmbH"}, []string{"halden.de"}, []string{"Halden Bay"}},
		{brands.Own, []string{"Zürnsuite"}, []string{"zurnsuite.com", "g3r.com/zurn"}, nil},
		{brands.Competitor, []string{"Pelmo", "Pelmo One", "Monte Pelmo"}, []string{"pelmo.it"}, nil},
		{brands.Competitor, []string{"Accordix"}, nil, nil},
	}
	sentences = []string{"%s is the one that most teams choose.", "Many prefer **%s** for its price.", "I could not find information about %s.",
		"| %s | 4.5 |\n|---|---|", "`%s` is a command.", "See [%s](https://example.com/a).", "<think>%s</think> Well.", "%s's support is slow."}
	fillers = []string{"It depends.", "- one\n- two", "Kovalt Street is a street.", "Halden Bay is a bay.", "Which is the best CRM for small teams, like Kovalt?",
		"kovalt.com and ostrel.io compare prices.", "\n\n## Options\n\n", "Sources: https://g3r.com/ostrel"}
	addresses = []string{"https://kovalt.com/a", "https://www.kovalt.com/a?utm_source=x", "https://kovalt.com/b", "https://github.com/kovalt/x", "https://github.com/other",
		"https://ostrel.io", "http://m.ostrel.io/pricing", "https://g3r.com/ostrel/reviews", "https://g3r.com/zurn", "https://g3r.com/best", "https://halden.de:8443/x",
		"https://pelmo.it/?id=7", "https://en.wikipedia.org/wiki/CRM", "not a url", "ftp://kovalt.com/", "https://[2001:db8::1]/x",
		"https://vertexaisearch.cloud.google.com/grounding-api-redirect/abc", "https://www.google.com/url?url=https%3A%2F%2Fpelmo.it%2Fnews"}
	titles    = []string{"Kovalt", "halden.de", "A title", ""}
	versions  = []string{"m-5", "m-5-2026-02-11", "m-5@20260301", "m-5-2026-13-01", "z", "", "-20260301", "@2026-03-01"}
	topics    = []string{"crm", "prices"}
	tags      = []string{"a", "b", "c"}
	countries = []string{"IT", "DE"}
	languages = []string{"it", "de", "en"}

	questionIDs = []string{"q1", "q2", "q3", "q4", "q_own"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// some returns some of the items in their order, at least min.
func some[T any](r *rand.Rand, from []T, min int) []T {
	chosen := []T{}
	left := slices.Sorted(slices.Values(r.Perm(len(from))[:min+r.IntN(len(from)-min+1)]))
	for _, i := range left {
		chosen = append(chosen, from[i])
	}
	return chosen
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	t.Helper()
	w := &world{site: newSite(t), r: r, made: make([]*brands.Brand, len(brandPool))}
	for i, text := range []string{"Which is the best CRM for small teams, like Kovalt?", "How good is Ostrel?", "What does a CRM cost?", "Name three tools."} {
		w.exec(t, `
INSERT INTO questions (id, text, language, country, topic, tags, status) VALUES ($1, $2, 'it', 'IT', $3, $4, 'active')
ON CONFLICT (id) DO UPDATE SET (text, topic, tags) = (excluded.text, excluded.topic, excluded.tags)`,
			fmt.Sprint("q", i+1), text, pick(r, topics), some(r, tags, 0))
	}
	w.exec(t, `INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
VALUES ($1, 'q_own', 'Is Kovalt better than Halden?', 'it', 'IT', 'own topic', '{a}', 'active')`, w.account)
	w.read(t)
	return w
}

// read reads the brands and the questions as they are now.
func (w *world) read(t *testing.T) {
	t.Helper()
	var err error
	w.active, w.revision, err = brands.ReadActive(t.Context(), w.plain, w.account)
	must(t, err)
	w.matcher = brands.Compile(w.active)
	w.catalog, err = catalog.QuestionsOf(t.Context(), w.plain, w.account, questionIDs)
	must(t, err)
}

// addRun creates a random run.
func (w *world) addRun(t *testing.T) {
	t.Helper()
	// Around the days on which the clocks of New York, Rome and Cairo change: March 8 and 29, April 24.
	day := time.Date(2026, 3, pick(w.r, []int{8, 29, 31 + 24}), 0, 0, 0, 0, time.UTC)
	run := &wroteRun{older: w.r.IntN(4) == 0, runSpec: runSpec{
		models: some(w.r, []string{"m1", "m2", "m3"}, 1), questions: some(w.r, questionIDs, 1), repetitions: 1 + w.r.IntN(4),
		country: pick(w.r, countries), language: pick(w.r, languages), measured: pick(w.r, []string{"grounded", "closed_book"}),
		method:  pick(w.r, []string{"AIVM-1.0", "AIVM-0.9"}),
		created: day.Add(time.Duration(w.r.IntN(48*60)-24*60) * time.Minute),
	}}
	w.r.Shuffle(len(run.models), func(i, j int) { run.models[i], run.models[j] = run.models[j], run.models[i] })
	run.id = w.createRun(t, run.runSpec)
	for _, m := range run.models {
		for _, q := range run.questions {
			for range run.repetitions {
				run.jobs = append(run.jobs, &wroteJob{run: run, model: m, question: q, ordinal: int32(len(run.jobs) + 1)})
			}
		}
	}
	w.runs = append(w.runs, run)
}

func (r *wroteRun) isFinal() bool {
	return r.canceled || !slices.ContainsFunc(r.jobs, func(j *wroteJob) bool { return !j.ended })
}

func (w *world) job(k jobs.Key) *wroteJob {
	return w.runs[slices.IndexFunc(w.runs, func(r *wroteRun) bool { return r.id == k.Run })].jobs[k.Ordinal-1]
}

// eachJob calls f with all jobs.
func (w *world) eachJob(f func(*wroteJob)) {
	for _, run := range w.runs {
		for _, j := range run.jobs {
			f(j)
		}
	}
}

// work claims jobs and settles most of the held ones.
func (w *world) work(t *testing.T) {
	t.Helper()
	var batches [4][]jobs.Settlement
	var older []jobs.Settlement
	w.held = slices.DeleteFunc(append(w.held, w.claim(t, w.r.IntN(120))...), func(held jobs.Job) (settled bool) {
		j := w.job(held.Key)
		if j.run.canceled || w.r.IntN(6) == 0 {
			return j.run.canceled
		}
		s := failed(held)
		j.ended, j.failed = true, true
		if w.r.IntN(8) > 0 {
			j.stored, j.failed = w.answer(), false
			j.version, s = j.stored.ModelVersion, completed(held, j.stored)
		}
		if j.run.older && w.r.IntN(2) == 0 {
			older = append(older, s)
			return true
		}
		w.match(j)
		b := &batches[w.r.IntN(len(batches))]
		*b = append(*b, s)
		return true
	})
	for _, b := range batches {
		settle(t, w.dispatcher, b...)
	}
	settle(t, w.older, older...)
}

// answer returns a random answer.
func (w *world) answer() *answers.Answer {
	a := &answers.Answer{AnsweredAt: time.Now(), Truncated: w.r.IntN(12) == 0}
	for range w.r.IntN(5) {
		if w.r.IntN(4) == 0 {
			a.Text += pick(w.r, fillers) + "\n"
			continue
		}
		sentence := fmt.Sprintf(pick(w.r, sentences), pick(w.r, pick(w.r, brandPool).names)) + "\n"
		a.Text += strings.Repeat(sentence, pick(w.r, []int{1, 1, 1, 150}))
	}
	if w.r.IntN(3) > 0 {
		for n := range w.r.IntN(5) {
			c := answers.Citation{Position: n + 1, URL: pick(w.r, addresses)}
			if w.r.IntN(2) == 0 {
				c.Title = new(pick(w.r, titles))
			}
			a.Citations = append(a.Citations, c)
		}
	}
	if w.r.IntN(4) > 0 {
		a.ModelVersion = new(pick(w.r, versions))
	}
	if w.r.IntN(2) == 0 {
		a.Searched = w.someBool()
	}
	return a
}

// match matches the stored answer of a job with the present brands.
func (w *world) match(j *wroteJob) {
	if j.stored != nil {
		j.facts = &wroteFact{factOf(w.matcher, w.active, w.catalog[j.question].Text, j.ordinal, j.stored), w.revision}
	}
}

// factOf returns what an answer shows of brands.
func factOf(m *match.Matcher, active []brands.Brand, question string, ordinal int32, a *answers.Answer) visibility.Fact {
	of := counted([]jobs.Ended{{Answer: a}})[0].Answer
	found := m.Match(match.Answer{Text: of.Text, Question: m.Question(question), Citations: of.Citations})
	f := visibility.Fact{Ordinal: ordinal, Version: a.ModelVersion}
	f.Known = a.Searched == nil || *a.Searched || len(found.Pages) > 0
	switch {
	case a.Truncated:
		f.Status = visibility.Truncated
	case found.Empty:
		f.Status = visibility.Empty
	}
	for _, b := range found.Brands {
		f.Brands = append(f.Brands, visibility.BrandFact{Brand: active[b.Brand].Number, Mentions: int32(b.Mentions),
			Position: int32(b.Position), Citations: int32(b.Citations), Flags: b.Flags})
	}
	slices.SortFunc(f.Brands, func(a, b visibility.BrandFact) int { return int(a.Brand - b.Brand) })
	for _, p := range found.Pages {
		page := visibility.Page{Key: p.Key, Host: p.Host}
		if p.Owner >= 0 {
			page.Owner = active[p.Owner].Number
		}
		f.Pages = append(f.Pages, page)
	}
	return f
}

// status returns the status of a job as the methodology defines it.
func (w *world) status(j *wroteJob) string {
	switch {
	case j.failed:
		return "failed"
	case !j.ended && j.run.canceled:
		return "canceled"
	case !j.ended:
		return "pending"
	case j.facts == nil, j.facts.Status == visibility.OK && j.facts.revision < w.revision && !j.gone:
		return "recounting"
	}
	return [...]string{visibility.OK: "ok", visibility.Empty: "empty", visibility.Truncated: "truncated"}[j.facts.Status]
}

// recount recounts the answers of final runs that have no facts, and those whose facts are of an older revision.
func (w *world) recount(t *testing.T) {
	t.Helper()
	must(t, w.counter.FindUncounted(t.Context()))
	// Another process, because one looks at accounts whose brands have not changed once a minute.
	must(t, recount(t, newCounter(w.plain)))
	w.eachJob(func(j *wroteJob) {
		switch {
		case !j.ended || j.failed || j.facts == nil && !j.run.isFinal():
		case j.stored != nil:
			w.match(j)
		case j.facts == nil:
			j.facts = &wroteFact{visibility.Fact{Status: visibility.Empty}, w.revision}
		}
	})
}

// deleteAnswers deletes some answers of a run because of their age.
func (w *world) deleteAnswers(t *testing.T) {
	t.Helper()
	must(t, w.counter.FindUncounted(t.Context())) // before an answer is as old
	run := pick(w.r, w.runs)
	if run.older && !run.isFinal() {
		return // FindUncounted looks at runs that were started within 8 days
	}
	var old []int32
	for _, j := range run.jobs {
		if !j.ended || j.failed || w.r.IntN(3) == 0 {
			continue
		}
		old = append(old, j.ordinal)
		j.gone = j.gone || j.facts != nil && j.facts.Status == visibility.OK
		j.stored = nil
	}
	w.age(t, run.id, old...)
	must(t, w.purge(t))
}

// cancel cancels a run.
func (w *world) cancel(t *testing.T) {
	t.Helper()
	run := pick(w.r, w.runs)
	if slices.ContainsFunc(run.jobs, func(j *wroteJob) bool { return !j.ended }) {
		w.exec(t, `SELECT FROM cancel_run($1, $2)`, w.account, run.id)
		run.canceled = true
	}
}

// changeBrands creates a brand or changes one.
func (w *world) changeBrands(t *testing.T) {
	t.Helper()
	n := w.r.IntN(len(brandPool))
	from := &brandPool[n]
	c := brands.Change{Kind: &from.kind, Name: &from.names[0], Aliases: some(w.r, from.names[1:], 0),
		Domains: some(w.r, from.domains, 0), Exclude: some(w.r, from.exclusion, 0), MatchCase: new(w.r.IntN(4) == 0)}
	if w.r.IntN(8) == 0 {
		c.Kind = new(pick(w.r, brands.Kinds))
	}
	if w.made[n] == nil {
		b, err := brands.Create(t.Context(), w.plain, w.account, store.NewID(), c)
		must(t, err)
		w.made[n] = b
	} else {
		if w.r.IntN(3) == 0 {
			c = brands.Change{Status: new(pick(w.r, brands.Statuses))}
		}
		w.changeBrand(t, w.made[n].ID, c)
	}
	w.read(t)
}

// changeQuestions gives a question another topic and other tags.
func (w *world) changeQuestions(t *testing.T) {
	t.Helper()
	w.exec(t, `UPDATE questions SET topic = $2, tags = $3 WHERE id = $1`, pick(w.r, questionIDs), pick(w.r, topics), some(w.r, tags, 0))
	w.read(t)
}

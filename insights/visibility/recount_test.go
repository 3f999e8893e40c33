package visibility_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
)

// newSettledWorld returns a world with brands, and runs whose jobs are all settled and counted: one of 12 jobs, or random
// ones with 40 jobs or more.
func newSettledWorld(t *testing.T, one bool) *world {
	t.Helper()
	w := newWorld(t, rand.New(rand.NewPCG(rand.Uint64(), 0)))
	for range 4 {
		w.changeBrands(t)
	}
	if one {
		w.create(t, false, runSpec{models: []string{"m2", "m1"}, questions: []string{"q1", "q_own"}, repetitions: 3, country: "IT", language: "it",
			measured: "grounded", method: "AIVM-1.0", created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
	}
	for n := 0; !one && n < 40; {
		w.addRun(t)
		run := w.runs[len(w.runs)-1]
		run.older = false
		n += len(run.jobs)
	}
	w.settleAll(t)
	return w
}

// settleAll claims and settles all jobs.
func (w *world) settleAll(t *testing.T) {
	t.Helper()
	for slices.ContainsFunc(w.runs, func(r *wroteRun) bool { return !r.isFinal() }) {
		w.work(t)
	}
}

// raiseRevision changes a brand, so that all answers wait for a recount.
func (w *world) raiseRevision(t *testing.T) {
	t.Helper()
	before := w.revision
	for w.revision == before {
		w.changeBrands(t)
	}
}

// forgetFacts deletes all facts, as if releases that kept none had settled the jobs.
func (w *world) forgetFacts(t *testing.T) {
	t.Helper()
	w.exec(t, `DELETE FROM visibility_facts`)
	w.exec(t, `UPDATE measurement_runs SET jobs_counted = 0`)
}

// splitFacts makes small chunks of all facts again.
func (w *world) splitFacts(t *testing.T) {
	t.Helper()
	w.forgetFacts(t)
	w.exec(t, `UPDATE measurement_runs SET jobs_counted = jobs_completed + jobs_failed`)
	for _, run := range w.runs {
		for part := range slices.Chunk(run.jobs, 3) {
			var ended []visibility.Job
			for _, j := range part {
				e := jobs.Ended{Key: jobs.Key{Account: w.account, Run: run.id, Ordinal: j.ordinal}, Answer: j.stored, Failed: j.failed}
				ended = append(ended, counted([]jobs.Ended{e})...)
			}
			must(t, pgx.BeginFunc(t.Context(), w.plain, func(tx pgx.Tx) error {
				var b pgx.Batch
				if err := w.counter.Count(t.Context(), tx, &b, ended); err != nil {
					return err
				}
				return tx.SendBatch(t.Context(), &b).Close()
			}))
		}
	}
}

// checkSnapshot fails the test unless each answer that is counted has the facts that matching it with the present
// brands gives, and all others are recounting.
func (w *world) checkSnapshot(t *testing.T) {
	t.Helper()
	if err := w.snapshot(t); err != nil {
		t.Error(err)
	}
}

// snapshot is checkSnapshot for any goroutine.
func (w *world) snapshot(t *testing.T) error {
	m, err := visibility.ReadMetrics(t.Context(), w.pool, w.account, &visibility.Query{})
	if err != nil {
		return err
	}
	total := int64(0)
	w.eachJob(func(*wroteJob) { total++ })
	a := m.Answers
	if sum := a.OK + a.Empty + a.Truncated + a.Failed + a.Canceled + a.Pending + a.Recounting; sum != total {
		return fmt.Errorf("%d jobs have a status, not %d: %+v", sum, total, a)
	}
	for _, run := range w.runs {
		facts, active, err := visibility.ReadFacts(t.Context(), w.pool, w.account, run.id, 1, int32(len(run.jobs)))
		if err != nil {
			return err
		}
		var compiled []match.Brand
		for i := range active {
			compiled = append(compiled, active[i].Compiled())
		}
		m := match.Compile(compiled)
		for ordinal, f := range facts {
			j := run.jobs[ordinal-1]
			if j.gone {
				continue
			}
			if diff := cmp.Diff(factsOf(m, active, w.catalog[j.question].Text, j.stored), describeFacts(&f)); diff != "" {
				return fmt.Errorf("job %d of %s (-want +got):\n%s", ordinal, run.id.Text("run"), diff)
			}
		}
	}
	return nil
}

// A factText has the facts of one answer as texts.
type factText struct {
	Known         bool
	Brands, Pages []string
}

// factsOf matches an answer.
func factsOf(m *match.Matcher, active []brands.Brand, question string, a *answers.Answer) (f factText) {
	of := match.Answer{Text: a.Text, Question: m.Question(question)}
	for _, c := range a.Citations {
		cited := match.Citation{URL: c.URL}
		if c.Title != nil {
			cited.Title = *c.Title
		}
		of.Citations = append(of.Citations, cited)
	}
	found := m.Match(of)
	f.Known = a.Searched == nil || *a.Searched || len(found.Pages) > 0
	for _, b := range found.Brands {
		f.Brands = append(f.Brands, fmt.Sprint(active[b.Brand].Number, " ", b.Mentions, " ", b.Position, " ", b.Citations, " ", b.Flags))
	}
	slices.Sort(f.Brands)
	for _, p := range found.Pages {
		owner := int32(0)
		if p.Owner >= 0 {
			owner = active[p.Owner].Number
		}
		f.Pages = append(f.Pages, fmt.Sprint(p.Key, " ", p.Host, " ", owner))
	}
	return f
}

func describeFacts(of *visibility.Fact) (f factText) {
	f.Known = of.Known
	for _, b := range of.Brands {
		f.Brands = append(f.Brands, fmt.Sprint(b.Brand, " ", b.Mentions, " ", b.Position, " ", b.Citations, " ", b.Flags))
	}
	slices.Sort(f.Brands)
	for _, p := range of.Pages {
		f.Pages = append(f.Pages, fmt.Sprint(p.Key, " ", p.Host, " ", p.Owner))
	}
	return f
}

// checkAllCounted fails the test unless all answers are counted at the present revision.
func (w *world) checkAllCounted(t *testing.T) {
	t.Helper()
	w.read(t)
	w.eachJob(func(j *wroteJob) {
		if j.ended && !j.failed {
			w.match(j)
		}
	})
	q := &visibility.Query{}
	want := w.metrics(q)
	if diff := cmp.Diff(want, w.readMetrics(t, w.account, q), compareFloats); diff != "" || !want.Complete {
		t.Errorf("complete: %t (-want +got):\n%s", want.Complete, diff)
	}
}

// allFacts returns the stored facts of all jobs by run and ordinal.
func (s *site) allFacts(t *testing.T) map[string]visibility.Fact {
	t.Helper()
	all := make(map[string]visibility.Fact)
	rows, err := s.plain.Query(t.Context(), `SELECT run_id, facts FROM visibility_facts`)
	must(t, err)
	var run store.ID
	var column []byte
	_, err = pgx.ForEachRow(rows, []any{&run, &column}, func() error {
		facts, err := visibility.DecodeFacts(column)
		for _, f := range facts {
			key := fmt.Sprint(run.Text("run"), " ", f.Ordinal)
			if _, twice := all[key]; twice {
				t.Errorf("job %s has facts twice", key)
			}
			all[key] = f
		}
		return err
	})
	must(t, err)
	return all
}

// TestRecountedFactsAreFreshFacts: after changes of brands, recounted facts are those that counting the stored answers
// anew gives.
func TestRecountedFactsAreFreshFacts(t *testing.T) {
	t.Parallel()
	w := newSettledWorld(t, false)
	rounds := 4
	if storetest.Long() {
		rounds = 200
	}
	for range rounds {
		w.raiseRevision(t)
		if m := w.readMetrics(t, w.account, &visibility.Query{}); m.Answers.OK > 0 || m.Answers.Recounting > 0 == m.Complete {
			t.Errorf("before the recount: %+v, complete: %t", m.Answers, m.Complete)
		}
		must(t, recount(t, w.counter))
		w.checkAllCounted(t)
		w.verify(t)
		recounted := w.allFacts(t)
		w.forgetFacts(t)
		must(t, w.counter.FindUncounted(t.Context()))
		must(t, recount(t, newCounter(w.plain)))
		if diff := cmp.Diff(w.allFacts(t), recounted); diff != "" {
			t.Fatalf("recounted (-fresh +recounted):\n%s", diff)
		}
	}
}

// TestChangedBrandsAreRecounted: each kind of change makes stored answers wait for a recount, which gives the facts of
// the new brands.
func TestChangedBrandsAreRecounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, rand.New(rand.NewPCG(1, 2)))
	own := w.createBrand(t, w.account, brands.Own, "Kovalt", "kovalt.com")
	other := w.createBrand(t, w.account, brands.Competitor, "Ostrel")
	run := w.simpleRun(t, w.account, 4)
	var settlements []jobs.Settlement
	for i, j := range w.claim(t, 4) {
		a := &answers.Answer{Text: []string{"Kovalt and Ostrel.", "Halden.", "Ostrel", "Ostrel Cloud or Kovalt CRM"}[i]}
		a.Citations = []answers.Citation{{Position: 1, URL: "https://kovalt.com/a"}, {Position: 2, URL: "https://ostrel.io"}}
		settlements = append(settlements, completed(j, a))
	}
	settle(t, w.dispatcher, settlements...)
	type seen struct{ Mentioned, Pages map[string]int64 }
	read := func() (s seen) {
		s = seen{make(map[string]int64), make(map[string]int64)}
		for _, row := range w.readMetrics(t, w.account, &visibility.Query{Filter: visibility.Filter{Run: &run}}).Rows {
			s.Mentioned[row.Name], s.Pages[row.Name] = row.MentionRate.Count, row.CitationShare.Count
		}
		return s
	}
	for _, step := range []struct {
		name   string
		change func()
		want   seen
	}{
		{"nothing", func() {}, seen{map[string]int64{"Kovalt": 2, "Ostrel": 3}, map[string]int64{"Kovalt": 4, "Ostrel": 0}}},
		{"a brand is added", func() { w.createBrand(t, w.account, brands.Competitor, "Halden") },
			seen{map[string]int64{"Kovalt": 2, "Ostrel": 3, "Halden": 1}, map[string]int64{"Kovalt": 4, "Ostrel": 0, "Halden": 0}}},
		{"an alias is added", func() {
			w.changeBrand(t, w.account, own.ID, brands.Change{Aliases: []string{"Halden CRM", "Ostrel Cloud"}})
		},
			seen{map[string]int64{"Kovalt": 2, "Ostrel": 2, "Halden": 1}, map[string]int64{"Kovalt": 4, "Ostrel": 0, "Halden": 0}}},
		{"a domain is moved", func() {
			w.changeBrand(t, w.account, own.ID, brands.Change{Domains: []string{}})
			w.changeBrand(t, w.account, other.ID, brands.Change{Domains: []string{"kovalt.com", "ostrel.io"}})
		}, seen{map[string]int64{"Kovalt": 2, "Ostrel": 2, "Halden": 1}, map[string]int64{"Kovalt": 0, "Ostrel": 8, "Halden": 0}}},
		{"a brand is archived", func() { w.changeBrand(t, w.account, other.ID, brands.Change{Status: new(brands.Archived)}) },
			seen{map[string]int64{"Kovalt": 2, "Halden": 1}, map[string]int64{"Kovalt": 0, "Halden": 0}}},
		{"a phrase is excluded", func() {
			w.changeBrand(t, w.account, own.ID, brands.Change{Exclude: []string{"Kovalt CRM"}, Aliases: []string{}})
		},
			seen{map[string]int64{"Kovalt": 1, "Halden": 1}, map[string]int64{"Kovalt": 0, "Halden": 0}}},
	} {
		step.change()
		if m := w.readMetrics(t, w.account, &visibility.Query{}); step.name != "nothing" && (m.Complete || m.Answers.Recounting != 4) {
			t.Errorf("%s: before the recount: %+v", step.name, m.Answers)
		}
		must(t, recount(t, w.counter))
		if diff := cmp.Diff(step.want, read()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		w.verify(t)
	}
}

// TestBacklogCountsWhatWaits: the backlog has the answers of older revisions, and those of runs that a release without
// facts has settled.
func TestBacklogCountsWhatWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(t, insertQuestion)
	own := s.createBrand(t, s.account, brands.Own, "Kovalt")
	s.simpleRun(t, s.account, 4)
	counted := s.claim(t, 4)
	s.simpleRun(t, s.account, 3)
	missing := s.claim(t, 3)
	settlements := func(claimed []jobs.Job) (all []jobs.Settlement) {
		for _, j := range claimed {
			all = append(all, completed(j, &answers.Answer{Text: "Kovalt."}))
		}
		return all
	}
	settle(t, s.dispatcher, settlements(counted)...)
	settle(t, s.older, settlements(missing)...)
	must(t, s.counter.FindUncounted(t.Context()))
	check := func(when string, want int64) {
		t.Helper()
		b, err := visibility.ReadBacklog(t.Context(), s.pool)
		must(t, err)
		if b.Answers != want {
			t.Errorf("%s: %d answers wait, want %d", when, b.Answers, want)
		}
	}
	check("settled", 3)
	s.changeBrand(t, s.account, own.ID, brands.Change{Aliases: []string{"Kovalt CRM"}})
	check("with another alias", 7)
	must(t, recount(t, s.counter))
	check("recounted", 0)
}

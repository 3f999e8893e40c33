package visibility_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
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
		m := compile(active)
		for ordinal, f := range facts {
			j := run.jobs[ordinal-1]
			if j.gone {
				continue
			}
			want := factOf(m, active, w.catalog[j.question].Text, ordinal, j.stored)
			if diff := cmp.Diff(want, f, cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("job %d of %s (-want +got):\n%s", ordinal, run.id.Text("run"), diff)
			}
		}
	}
	return nil
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

// TestBacklogCountsWhatWaits: the backlog has the answers of older revisions, and those of runs that a release without
// facts has settled.
func TestBacklogCountsWhatWaits(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 4)
	own := s.createBrand(t, s.account, brands.Own, "Kovalt")
	answer := &answers.Answer{Text: "Kovalt."}
	settle(t, s.dispatcher, completedAll(s.claim(t, 4), answer)...)
	s.simpleRun(t, s.account, 3)
	settle(t, s.older, completedAll(s.claim(t, 3), answer)...)
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

package visibility_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
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

// TestDamagedFactsDelayNoOtherAccount: facts that cannot be decoded stop the recount of their account only, and the
// error names it.
func TestDamagedFactsDelayNoOtherAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(t, insertQuestion)
	accounts := []store.ID{s.account, s.newAccount(t)}
	for _, account := range accounts {
		own := s.createBrand(t, account, brands.Own, "Kovalt")
		s.simpleRun(t, account, 3)
		settle(t, s.dispatcher, completedAll(s.claim(t, 3), &answers.Answer{Text: "Kovalt."})...)
		s.changeBrand(t, account, own.ID, brands.Change{Aliases: []string{"Kovalt CRM"}})
	}
	for i, damaged := range accounts {
		var facts []byte
		must(t, s.plain.QueryRow(t.Context(), `SELECT facts FROM visibility_facts WHERE account_id = $1`, damaged).Scan(&facts))
		s.exec(t, `UPDATE visibility_facts SET facts = '\xff' WHERE account_id = $1`, damaged)
		if err := recount(t, s.counter); err == nil || !strings.Contains(err.Error(), damaged.Text("acct")+": facts are damaged") {
			t.Errorf("got %v, want damaged facts of %s", err, damaged.Text("acct"))
		}
		other := accounts[1-i]
		if m := s.readMetrics(t, other, &visibility.Query{}); !m.Complete {
			t.Errorf("the answers of the other account are not recounted: %+v", m.Answers)
		}
		s.exec(t, `UPDATE visibility_facts SET facts = $2 WHERE account_id = $1`, damaged, facts)
		s.exec(t, `UPDATE brand_revisions SET revision = revision + 1`)
	}
	must(t, recount(t, s.counter))
}

// TestStaleChunkAfterTheRecount: a chunk of an older revision that was inserted after the recount had ended is recounted
// by a process that starts long after the change.
func TestStaleChunkAfterTheRecount(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 3)
	s.createBrand(t, s.account, brands.Own, "Kovalt")
	settle(t, s.dispatcher, completedAll(s.claim(t, 3), &answers.Answer{Text: "Kovalt."})...)
	must(t, recount(t, s.counter))
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.exec(t, `UPDATE brand_revisions SET changed_at = changed_at - interval '3 hours'`)
	if m := s.readMetrics(t, s.account, &visibility.Query{}); m.Answers.Recounting != 3 {
		t.Fatalf("%+v", m.Answers)
	}
	must(t, recount(t, newCounter(s.plain)))
	if m := s.readMetrics(t, s.account, &visibility.Query{}); !m.Complete || m.Answers.OK != 3 {
		t.Errorf("complete: %t, %+v", m.Complete, m.Answers)
	}
}

// TestLostChange: a process that has counted with a change which a failover lost counts with the next change, although it
// has the revision of the lost one.
func TestLostChange(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 3)
	own := s.createBrand(t, s.account, brands.Own, "Kovalt")
	s.changeBrand(t, s.account, own.ID, brands.Change{Aliases: []string{"Lost"}})
	settle(t, s.dispatcher, completedAll(s.claim(t, 1), &answers.Answer{Text: "Lost."})...)
	s.exec(t, `UPDATE brands SET aliases = '{}'`)
	s.exec(t, `UPDATE brand_revisions SET revision = revision - 1`)
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.changeBrand(t, s.account, own.ID, brands.Change{Aliases: []string{"Ostrel"}})
	settle(t, s.dispatcher, completedAll(s.claim(t, 2), &answers.Answer{Text: "Ostrel."})...)
	must(t, recount(t, s.counter))
	if m := s.readMetrics(t, s.account, &visibility.Query{}); m.Rows[0].MentionRate.Count != 2 || m.Answers.OK != 3 {
		t.Errorf("%d mentions in %+v, want those of the next change, 2", m.Rows[0].MentionRate.Count, m.Answers)
	}
}

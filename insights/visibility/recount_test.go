package visibility_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
	"aiv/store/storetest"
)

// newSettledWorld returns a world with active brands, and runs whose jobs are all settled and counted: one of 12 jobs, or
// random ones with 40 jobs or more.
func newSettledWorld(t *testing.T, one bool) *world {
	t.Helper()
	seed := rand.Uint64()
	t.Log("seed ", seed)
	w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
	for n := 0; n < 4 || len(w.active) == 0; n++ { // a change may archive the only active brand
		w.changeBrands(t)
	}
	if one {
		spec := simpleRun(3)
		spec.models, spec.questions = []string{"m2", "m1"}, []string{"q1", "q_own"}
		w.create(t, false, spec)
	}
	for n := 0; !one && n < 40; {
		w.addRun(t)
		run := w.runs[len(w.runs)-1]
		run.older = false
		n += len(run.jobs)
	}
	for slices.ContainsFunc(w.runs, func(r *wroteRun) bool { return !r.isFinal() }) {
		w.work(t)
	}
	return w
}

// raiseRevision changes a brand, so that all answers wait for a recount.
func (w *world) raiseRevision(t *testing.T) {
	t.Helper()
	for before := w.revision; w.revision == before; {
		w.changeBrands(t)
	}
}

// snapshot returns an error unless each job has a status, and each answer that is counted has the facts that matching
// it with the present brands gives.
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
		m := brands.Compile(active)
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

// checkAllCounted fails the test unless all answers are counted with the present brands.
func (w *world) checkAllCounted(t *testing.T) {
	t.Helper()
	must(t, w.snapshot(t))
	if a := w.readMetrics(t, &visibility.Query{}).Answers; !a.Complete() {
		t.Errorf("not all answers are counted: %+v", a)
	}
}

// TestStepsThatAreKilled ends the session of each kind of step before each of its statements, as a crash of the process
// does. Reads are right at any time, and the next step goes on.
func TestStepsThatAreKilled(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about the sessions of one server")
	}
	for _, of := range []struct {
		name    string
		prepare func(*world, *testing.T) // what there is to do
		step    func(testing.TB, *visibility.Counter) error
	}{
		{"recount", (*world).raiseRevision, recount},
		{"backlog", func(w *world, t *testing.T) { // as if releases that kept no facts had settled the jobs
			w.exec(t, `DELETE FROM visibility_facts`)
			w.exec(t, `UPDATE measurement_runs SET jobs_counted = 0`)
		}, func(t testing.TB, c *visibility.Counter) error {
			if err := c.FindUncounted(t.Context()); err != nil {
				return err
			}
			return recount(t, c)
		}},
		{"merge", func(w *world, t *testing.T) { w.exec(t, `UPDATE visibility_facts SET small = true`) }, merge},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			w := newSettledWorld(t, true)
			var left atomic.Int64 // statements until the session ends
			isLast := func(string) bool { return left.Add(-1) == 0 }
			pool := storetest.WithTracer(t, w.plain, storetest.OnStatement{Matches: isLast, Do: func(conn *pgx.Conn) {
				var ended bool
				end := w.plain.QueryRow(context.Background(), `SELECT pg_terminate_backend($1, 60000)`, conn.PgConn().PID())
				if err := end.Scan(&ended); err != nil || !ended {
					t.Errorf("end a session: %t, %v", ended, err)
				}
			}})
			for n, killed := int64(1), true; killed; n++ {
				of.prepare(w, t)
				left.Store(n)
				c := newCounter(pool)
				killed = of.step(t, c) != nil
				if !killed && n < 5 {
					t.Fatal("a step has hardly any statements")
				}
				must(t, w.snapshot(t))
				left.Store(0)
				must(t, of.step(t, c))
				w.checkAllCounted(t)
			}
			w.verify(t)
		})
	}
}

// TestBacklogCountsWhatWaits: the backlog has the answers of older revisions, and those of runs that a release without
// facts has settled.
func TestBacklogCountsWhatWaits(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 4)
	own := s.createBrand(t, brands.Own, "Kovalt")
	s.answer(t, s.dispatcher, texts(4, "Kovalt")...)
	s.createRun(t, simpleRun(3))
	s.answer(t, s.older, texts(3, "Kovalt")...)
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
	s.changeBrand(t, own, alias("Kovalt CRM"))
	check("with another alias", 7)
	must(t, recount(t, s.counter))
	check("recounted", 0)
}

// TestDamagedFactsDelayNoOtherAccount: facts that cannot be decoded stop the recount of their account and the merge of
// their run only, and the errors name these.
func TestDamagedFactsDelayNoOtherAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	damaged, other := s.account, s.newAccount(t)
	for _, s.account = range []store.ID{damaged, other} {
		own := s.createBrand(t, brands.Own, "Kovalt")
		s.createRun(t, simpleRun(3))
		s.answer(t, s.dispatcher, texts(3, "Kovalt")...)
		s.changeBrand(t, own, alias("Kovalt CRM"))
	}
	s.exec(t, `UPDATE visibility_facts SET facts = CASE account_id WHEN $1 THEN '\xff' ELSE facts END, small = true`, damaged)
	for _, step := range []func(testing.TB, *visibility.Counter) error{merge, recount} {
		if err := step(t, s.counter); err == nil || !strings.Contains(err.Error(), damaged.Text("acct")) {
			t.Errorf("got %v, want damaged facts of %s", err, damaged.Text("acct"))
		}
	}
	s.check(t, "the other account", visibility.Answers{OK: 3}, 3)
}

// TestStaleChunkAfterTheRecount: a chunk of an older revision that was inserted after the recount had ended is recounted
// by a process that starts long after the change.
func TestStaleChunkAfterTheRecount(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 3)
	s.createBrand(t, brands.Own, "Kovalt")
	s.answer(t, s.dispatcher, texts(3, "Kovalt")...)
	must(t, recount(t, s.counter))
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.exec(t, `UPDATE brand_revisions SET changed_at = changed_at - interval '3 hours'`)
	s.check(t, "with a stale chunk", visibility.Answers{Recounting: 3}, 0)
	must(t, recount(t, newCounter(s.plain)))
	s.check(t, "recounted", visibility.Answers{OK: 3}, 3)
}

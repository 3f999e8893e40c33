package visibility_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestConcurrentWork: while jobs are settled, brands change, two processes recount and merge, and answers are deleted,
// each read is right. In the end each answer is counted once.
func TestConcurrentWork(t *testing.T) {
	t.Parallel()
	changes, more := 8, 5
	if storetest.Long() {
		changes, more = 300, 23
	}
	seed := rand.Uint64()
	t.Log("seed ", seed)
	w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
	for n := 0; n < 4 || len(w.active) == 0; n++ { // a change may archive the only active brand
		w.changeBrands(t)
	}
	w.addRun(t)
	old := w.runs[0]
	for old.older = false; !old.isFinal(); {
		w.work(t)
	}
	for _, j := range old.jobs {
		w.age(t, old.id, j.ordinal)
		j.gone = true
	}
	for range more {
		w.addRun(t)
	}
	var settlements []jobs.Settlement
	for _, j := range w.claim(t, 10_000) {
		of := w.job(j.Key)
		of.stored, of.ended = w.answer(), true
		of.version = of.stored.ModelVersion
		settlements = append(settlements, completed(j, of.stored))
	}
	// The random numbers of goroutines are their own.
	random := rand.New(rand.NewPCG(w.r.Uint64(), 0))

	var settling, working sync.WaitGroup
	var settled atomic.Bool
	work := func(step func() error) {
		working.Go(func() {
			for last := false; !last; {
				last = settled.Load()
				if err := step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	settling.Go(func() {
		for part := range slices.Chunk(settlements, 1+len(settlements)/30) {
			if _, err := w.dispatcher.Settle(t.Context(), jobs.Reporter{}, part); err != nil {
				t.Error(err)
			}
		}
	})
	settling.Go(func() {
		for n := range changes {
			b := w.active[random.IntN(len(w.active))]
			c := brands.Change{Aliases: []string{fmt.Sprint(b.Name, " ", n)}, Kind: new(pick(random, brands.Kinds))}
			if _, err := brands.Update(t.Context(), w.plain, w.account, b.ID, c); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		c := newCounter(w.plain)
		work(func() error { return recount(t, c) })
		work(func() error { return merge(t, c) })
	}
	work(func() error { return w.purge(t) })
	work(func() error { return w.snapshot(t) })
	settling.Wait()
	settled.Store(true)
	working.Wait()

	must(t, recount(t, w.counter))
	must(t, merge(t, w.counter))
	must(t, w.snapshot(t))
	if a := w.readMetrics(t, &visibility.Query{}).Answers; !a.Complete() {
		t.Errorf("not all answers are counted: %+v", a)
	}
	w.verify(t)
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

// TestSettlementsDuringRecount: a recount that is held before its commit delays neither claims nor settlements of the
// same run, nor changes of brands, reads or other recounts. The backlog has what waits.
func TestSettlementsDuringRecount(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	check := func(when string, want visibility.Answers, mentioned, waiting int64) {
		t.Helper()
		s.check(t, when, want, mentioned)
		b, err := visibility.ReadBacklog(t.Context(), s.pool)
		must(t, err)
		storetest.Equal(t, waiting, b.Answers, when, ": the backlog")
	}
	s.answer(t, s.dispatcher, texts(1, "Kovalt")...)
	next := []visibility.Job{{Account: s.account, Run: run, Ordinal: 2, Answer: &visibility.Answer{Text: "Kovalt"}}}
	if s.counter.Prepare(next)[0] == nil {
		t.Error("an answer of a known run is not matched before its transaction")
	}
	kovalt := s.createBrand(t, brands.Own, "Kovalt")
	release := s.holdRecount(t, "INSERT INTO visibility_facts")
	check("a held recount", visibility.Answers{Recounting: 1, Pending: 5}, 0, 1)
	claimed := s.claim(t, 2)
	settle(t, s.dispatcher, completed(claimed[0], &answers.Answer{Text: "Kovalt"}), failed(claimed[1]))
	check("settlements", visibility.Answers{OK: 1, Failed: 1, Recounting: 1, Pending: 3}, 1, 1)
	s.changeBrand(t, kovalt, alias("Ostrel"))
	check("a change", visibility.Answers{Failed: 1, Recounting: 2, Pending: 3}, 0, 3) // with the failed job of a chunk
	must(t, recount(t, s.counter))                                                    // what is not locked
	check("another recount", visibility.Answers{OK: 1, Failed: 1, Recounting: 1, Pending: 3}, 1, 1)
	must(t, merge(t, s.counter))
	release()
	must(t, recount(t, s.counter)) // the held one was of the revision before
	check("in the end", visibility.Answers{OK: 2, Failed: 1, Pending: 3}, 2, 0)
	s.exec(t, `SELECT FROM cancel_run($1, $2)`, s.account, run)
	s.createRun(t, simpleRun(3))
	s.answer(t, s.older, texts(3, "Kovalt")...)
	must(t, s.counter.FindUncounted(t.Context()))
	check("canceled, and a run that an older release has settled", visibility.Answers{OK: 2, Failed: 1, Canceled: 3, Recounting: 3}, 2, 3)
	must(t, recount(t, s.counter))
	check("recounted", visibility.Answers{OK: 5, Failed: 1, Canceled: 3}, 5, 0)
	s.verify(t)
}

// holdRecount starts a recount of another process, and returns when it is about to send sql. release lets it end.
func (s *site) holdRecount(t *testing.T, sql string) (release func()) {
	t.Helper()
	held, reached, goOn := storetest.HeldUp(t, s.plain, sql)
	recounted := make(chan error, 1)
	go func() { recounted <- recount(t, newCounter(held)) }()
	select {
	case <-reached:
	case err := <-recounted:
		t.Fatalf("a recount that sends no %s: %v", sql, err)
	}
	return func() {
		t.Helper()
		goOn()
		must(t, <-recounted)
	}
}

// TestErasedWhileRecounted: an account that is erased during a recount leaves nothing.
func TestErasedWhileRecounted(t *testing.T) {
	t.Parallel()
	tables := slices.Concat(brands.Capability.Tables, visibility.Capability.Tables)
	s := newSite(t)
	for _, sql := range []string{"FROM brand_revisions", "LEFT JOIN brands", "SKIP LOCKED", "FROM measurement_runs", "FROM job_results",
		"INSERT INTO visibility_facts", "INSERT INTO visibility_recounts"} {
		s.account = s.newAccount(t)
		s.createRun(t, simpleRun(6))
		s.answer(t, s.dispatcher, texts(1, "Kovalt")...)
		s.createBrand(t, brands.Own, "Kovalt")
		killed := storetest.OnStatement{Matches: func(sent string) bool { return strings.Contains(sent, sql) },
			Do: func(c *pgx.Conn) { c.PgConn().Conn().Close() }}
		if err := recount(t, newCounter(storetest.WithTracer(t, s.plain, killed))); err == nil {
			t.Errorf("a recount that lost its connection before %s has no error", sql)
		}
		release := s.holdRecount(t, sql)
		erased := make(chan error, 1)
		go func() { erased <- s.erase(append(tables, jobs.Capability.Tables...)) }()
		storetest.Eventually(t, "the erasure has ended or waits", func() bool { return len(erased) > 0 || storetest.Waiting(t, s.plain) > 0 })
		release()
		must(t, <-erased)
		for _, table := range tables {
			if rows := storetest.Value[int](t, s.plain, `SELECT count(*) FROM `+table.Name); rows > 0 {
				t.Errorf("before %s: %d rows of %s are left", sql, rows, table.Name)
			}
		}
	}
}

// erase deletes the account's data in the order of an erasure.
func (s *site) erase(tables []schema.Table) error {
	ctx := context.Background()
	_, err := (&runs.Purger{Pool: s.plain, Actor: "test", Tables: tables}).Account(ctx, s.account)
	first := func(t schema.Table) schema.EraseFunc { return t.Erase.First }
	last := func(t schema.Table) schema.EraseFunc { return t.Erase.Last }
	for _, of := range []func(schema.Table) schema.EraseFunc{first, last} {
		for _, table := range tables {
			if erase := of(table); erase != nil && err == nil {
				_, err = erase(ctx, s.plain, table.Name, s.account)
			}
		}
	}
	return err
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
	for _, err := range []error{merge(t, s.counter), recount(t, s.counter)} {
		if err == nil || !strings.Contains(err.Error(), damaged.Text("acct")) {
			t.Errorf("got %v, want damaged facts of %s", err, damaged.Text("acct"))
		}
	}
	s.check(t, "the other account", visibility.Answers{OK: 3}, 3)
}

// TestLostRevision: a process that has counted with a change which a failover lost counts with the next change, although
// it has the revision of the lost one. A chunk of an older revision that was inserted after the recount had ended is
// recounted by a process that starts long after the change.
func TestLostRevision(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 3)
	own := s.createBrand(t, brands.Own, "Kovalt")
	s.changeBrand(t, own, alias("Lost"))
	s.answer(t, s.dispatcher, texts(1, "Lost")...)
	s.exec(t, `UPDATE brands SET aliases = '{}'`)
	s.exec(t, `UPDATE brand_revisions SET revision = revision - 1`)
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.changeBrand(t, own, alias("Ostrel"))
	s.answer(t, s.dispatcher, texts(2, "Ostrel")...)
	must(t, recount(t, s.counter))
	s.check(t, "with the next change", visibility.Answers{OK: 3}, 2)
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.exec(t, `UPDATE brand_revisions SET changed_at = changed_at - interval '3 hours'`)
	s.check(t, "with a stale chunk", visibility.Answers{Recounting: 3}, 0)
	must(t, recount(t, newCounter(s.plain)))
	s.check(t, "recounted", visibility.Answers{OK: 3}, 2)
}

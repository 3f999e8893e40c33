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
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestConcurrentWork: while jobs are settled, brands change, two processes recount and merge, and answers are deleted,
// each read is right. In the end each answer is counted once.
func TestConcurrentWork(t *testing.T) {
	t.Parallel()
	w := newSettledWorld(t)
	changes, more := 8, 2
	if storetest.Long() {
		changes, more = 300, 20
	}
	var old []int32
	for _, j := range w.runs[0].jobs {
		old = append(old, j.ordinal)
		j.gone = true
	}
	w.age(t, w.runs[0].id, old...)
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

	var settling, working, reading sync.WaitGroup
	var settled, worked atomic.Bool
	until := func(done *atomic.Bool, do func() error) func() {
		return func() {
			for last := false; !last; {
				last = done.Load()
				if err := do(); err != nil {
					t.Error(err)
					return
				}
			}
		}
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
		working.Go(until(&settled, func() error { return recount(t, c) }))
		working.Go(until(&settled, func() error { return merge(t, c) }))
	}
	working.Go(until(&settled, func() error { return w.purge(t) }))
	reading.Go(until(&worked, func() error { return w.snapshot(t) }))
	settling.Wait()
	settled.Store(true)
	working.Wait()
	worked.Store(true)
	reading.Wait()

	must(t, recount(t, w.counter))
	must(t, merge(t, w.counter))
	must(t, w.snapshot(t))
	if a := w.readMetrics(t, &visibility.Query{}).Answers; !a.Complete() {
		t.Errorf("not all answers are counted: %+v", a)
	}
	w.verify(t)
}

// newSettledWorld returns a world with active brands, and random runs with 40 jobs or more, which are all settled and
// counted.
func newSettledWorld(t *testing.T) *world {
	t.Helper()
	seed := rand.Uint64()
	t.Log("seed ", seed)
	w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
	for n := 0; n < 4 || len(w.active) == 0; n++ { // a change may archive the only active brand
		w.changeBrands(t)
	}
	for n := 0; n < 40; {
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

// firstWith matches the first statement that contains a text.
func firstWith(text string) func(sql string) bool {
	var seen atomic.Bool
	return func(sql string) bool { return strings.Contains(sql, text) && seen.CompareAndSwap(false, true) }
}

// holdRecount starts a recount of another process, and returns when it is about to execute a statement that matches, or
// has ended. release lets it go on, and returns when it has ended.
func (s *site) holdRecount(t *testing.T, matches func(sql string) bool) (isHeld bool, release func()) {
	t.Helper()
	held, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	hold := storetest.OnStatement{Matches: matches, Do: func(*pgx.Conn) { close(held); <-resume }}
	slow := newCounter(storetest.WithTracer(t, s.plain, hold))
	go func() { done <- recount(t, slow) }()
	release = func() {
		t.Helper()
		close(resume)
		must(t, <-done)
	}
	select {
	case <-held:
		return true, release
	case err := <-done:
		done <- err
		return false, release
	}
}

// TestSettlementsDuringRecount: a recount that is held before its commit delays neither claims nor settlements of the
// same run, nor changes of brands, reads or other recounts.
func TestSettlementsDuringRecount(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	s.answer(t, s.dispatcher, texts(1, "Kovalt")...)
	kovalt := s.createBrand(t, brands.Own, "Kovalt")
	_, release := s.holdRecount(t, firstWith("INSERT INTO visibility_facts"))
	s.check(t, "a held recount", visibility.Answers{Recounting: 1, Pending: 5}, 0)
	next := s.claim(t, 2)
	settle(t, s.dispatcher, completed(next[0], &answers.Answer{Text: "Kovalt"}), failed(next[1]))
	s.check(t, "settlements", visibility.Answers{OK: 1, Failed: 1, Recounting: 1, Pending: 3}, 1)
	s.changeBrand(t, kovalt, alias("Ostrel"))
	s.check(t, "a change", visibility.Answers{Failed: 1, Recounting: 2, Pending: 3}, 0)
	must(t, recount(t, s.counter)) // what is not locked
	s.check(t, "another recount", visibility.Answers{OK: 1, Failed: 1, Recounting: 1, Pending: 3}, 1)
	must(t, merge(t, s.counter))
	release()
	must(t, recount(t, s.counter)) // the held one was of the revision before
	s.check(t, "in the end", visibility.Answers{OK: 2, Failed: 1, Pending: 3}, 2)
	s.exec(t, `SELECT FROM cancel_run($1, $2)`, s.account, run)
	s.check(t, "canceled", visibility.Answers{OK: 2, Failed: 1, Canceled: 3}, 2)
	s.verify(t)
}

// TestPreparedAnswers: answers are matched before their transaction where the brands and the run are known.
func TestPreparedAnswers(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 2)
	next := []visibility.Job{{Account: s.account, Run: run, Ordinal: 2, Answer: &visibility.Answer{Text: "Kovalt"}}}
	before := s.counter.Prepare(next)
	s.answer(t, s.dispatcher, texts(1, "Kovalt")...)
	if after := s.counter.Prepare(next); before[0] != nil || after[0] == nil {
		t.Errorf("prepared: %v before the first answer, %v after it", before[0], after[0])
	}
}

// untilEndedOrWaiting returns when a statement waits for a lock, or done has the result of what may wait.
func (s *site) untilEndedOrWaiting(t *testing.T, done chan error) {
	t.Helper()
	storetest.Eventually(t, "it has ended or waits", func() bool { return len(done) > 0 || storetest.Waiting(t, s.plain) > 0 })
}

// TestErasedWhileRecounted: an account that is erased at any statement of a recount leaves nothing.
func TestErasedWhileRecounted(t *testing.T) {
	t.Parallel()
	tables := slices.Concat(jobs.Capability.Tables, brands.Capability.Tables, visibility.Capability.Tables)
	s := newSite(t)
	for n, isHeld := int64(1), true; isHeld; n++ {
		s.account = s.newAccount(t)
		s.createRun(t, simpleRun(6))
		s.answer(t, s.dispatcher, texts(1, "Kovalt")...)
		s.createBrand(t, brands.Own, "Kovalt")
		var statements atomic.Int64
		var release func()
		isHeld, release = s.holdRecount(t, func(string) bool { return statements.Add(1) == n })
		erased := make(chan error, 1)
		go func() { erased <- s.erase(tables) }()
		if isHeld {
			s.untilEndedOrWaiting(t, erased)
		}
		release()
		must(t, <-erased)
		for _, table := range tables {
			if strings.HasPrefix(table.Name, "visibility_") || strings.HasPrefix(table.Name, "brand") {
				var rows int
				must(t, s.plain.QueryRow(t.Context(), `SELECT count(*) FROM `+table.Name).Scan(&rows))
				if rows != 0 {
					t.Errorf("statement %d: %d rows of %s are left", n, rows, table.Name)
				}
			}
		}
	}
}

// erase deletes the account's data in the order of an erasure.
func (s *site) erase(tables []schema.Table) error {
	ctx := context.Background()
	if _, err := (&runs.Purger{Pool: s.plain, Actor: "test", Tables: tables}).Account(ctx, s.account); err != nil {
		return err
	}
	for _, last := range []bool{false, true} {
		for _, table := range tables {
			erase := table.Erase.First
			if last {
				erase = table.Erase.Last
			}
			if erase == nil {
				continue
			}
			if _, err := erase(ctx, s.plain, table.Name, s.account); err != nil {
				return err
			}
		}
	}
	return nil
}

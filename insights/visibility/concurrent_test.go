package visibility_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	w := newSettledWorld(t, false)
	old := len(w.runs)
	changes, more := 8, 2
	if storetest.Long() {
		changes, more = 300, 20
	}
	w.exec(t, `UPDATE measurement_runs SET started_at = started_at - interval '40 days' WHERE id = $1`, w.runs[0].id)
	w.exec(t, `UPDATE job_results SET started_at = now() - interval '40 days', finished_at = now() - interval '39 days' WHERE run_id = $1`, w.runs[0].id)
	for _, j := range w.runs[0].jobs {
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
	texts := rand.New(rand.NewPCG(w.r.Uint64(), 0))

	var settling, working, reading sync.WaitGroup
	settled, worked := make(chan struct{}), make(chan struct{})
	until := func(done chan struct{}, do func() error) func() {
		return func() {
			for {
				if err := do(); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
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
			b := w.active[texts.IntN(len(w.active))]
			c := brands.Change{Aliases: []string{fmt.Sprint(b.Name, " ", n)}, Kind: new(pick(texts, brands.Kinds))}
			if _, err := brands.Update(t.Context(), w.plain, w.account, b.ID, c); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		c := newCounter(w.plain)
		working.Go(until(settled, func() error { return recount(t, c) }))
		working.Go(until(settled, func() error { _, err := c.Merge(t.Context()); return err }))
	}
	working.Go(func() {
		if _, err := jobs.Purge(t.Context(), w.plain, 20*24*time.Hour, visibility.DeleteAnswers); err != nil {
			t.Error(err)
		}
	})
	reading.Go(until(worked, func() error { return w.snapshot(t) }))
	settling.Wait()
	close(settled)
	working.Wait()
	close(worked)
	reading.Wait()

	must(t, recount(t, w.counter))
	must(t, func() error { _, err := w.counter.Merge(t.Context()); return err }())
	w.checkSnapshot(t)
	m := w.readMetrics(t, w.account, &visibility.Query{})
	if m.Answers.Recounting > 0 || m.Answers.Pending > 0 || !m.Complete {
		t.Errorf("in the end: %+v", m.Answers)
	}
	facts := w.allFacts(t)
	w.eachJob(func(j *wroteJob) {
		if _, found := facts[fmt.Sprint(j.run.id.Text("run"), " ", j.ordinal)]; !found {
			t.Errorf("job %d of run %d of %d has no facts", j.ordinal, slices.Index(w.runs, j.run), old)
		}
	})
	w.verify(t)
}

// TestSettlementsDuringRecount: a recount that is held before its commit delays neither claims nor settlements of the
// same run, nor changes of brands, reads or other recounts.
func TestSettlementsDuringRecount(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	held, release := make(chan struct{}), make(chan struct{})
	slow := newCounter(storetest.WithTracer(t, s.plain, once("INSERT INTO visibility_facts", func() { close(held); <-release })))
	settle(t, s.dispatcher, completed(s.claim(t, 1)[0], &answers.Answer{Text: "Kovalt"}))
	kovalt := s.createBrand(t, s.account, brands.Own, "Kovalt")
	done := make(chan error)
	go func() { done <- recount(t, slow) }()
	<-held

	q := &visibility.Query{Filter: visibility.Filter{Run: &run}}
	check := func(want visibility.Answers) {
		t.Helper()
		if m := s.readMetrics(t, s.account, q); m.Answers != want || m.Complete {
			t.Errorf("got %+v, complete: %t; want %+v", m.Answers, m.Complete, want)
		}
	}
	check(visibility.Answers{Recounting: 1, Pending: 5})
	next := s.claim(t, 2)
	settle(t, s.dispatcher, completed(next[0], &answers.Answer{Text: "Kovalt"}), failed(next[1]))
	check(visibility.Answers{OK: 1, Failed: 1, Recounting: 1, Pending: 3})
	s.changeBrand(t, s.account, kovalt.ID, brands.Change{Aliases: []string{"Ostrel"}})
	check(visibility.Answers{Failed: 1, Recounting: 2, Pending: 3})
	must(t, recount(t, s.counter)) // what is not locked
	check(visibility.Answers{OK: 1, Failed: 1, Recounting: 1, Pending: 3})
	if _, err := s.counter.Merge(t.Context()); err != nil {
		t.Error(err)
	}
	close(release)
	must(t, <-done)
	must(t, recount(t, s.counter)) // the held one was of the revision before
	check(visibility.Answers{OK: 2, Failed: 1, Pending: 3})
	s.verify(t)
}

const insertQuestion = `INSERT INTO questions (id, text, language, country, topic, tags, status) VALUES ('q1', 'Which?', 'it', 'IT', 't', '{}', 'active')`

// newRunningSite returns a site with a run of some jobs.
func newRunningSite(t *testing.T, repetitions int) (s *site, run store.ID) {
	t.Helper()
	s = newSite(t)
	s.exec(t, insertQuestion)
	return s, s.simpleRun(t, s.account, repetitions)
}

// TestLateSettlement: a settlement that has read the brands before a change, and commits after the recount of the
// change has ended, is recounted.
func TestLateSettlement(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	s.createBrand(t, s.account, brands.Own, "Kovalt")
	counted, release := make(chan struct{}), make(chan struct{})
	slow := s.newDispatcher(t, func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []jobs.Ended) error {
		err := countBy(s.counter)(ctx, tx, b, ended)
		close(counted)
		<-release
		return err
	}, nil)
	job := s.claim(t, 1)[0]
	done := make(chan error)
	go func() {
		_, err := slow.Settle(t.Context(), jobs.Reporter{}, []jobs.Settlement{completed(job, &answers.Answer{Text: "Ostrel"})})
		done <- err
	}()
	<-counted
	ostrel := s.createBrand(t, s.account, brands.Competitor, "Ostrel")
	must(t, recount(t, s.counter))
	close(release)
	must(t, <-done)
	q := &visibility.Query{Filter: visibility.Filter{Run: &run}, Brand: &ostrel.ID}
	if m := s.readMetrics(t, s.account, q); m.Answers.Recounting != 1 || m.Answers.OK != 0 {
		t.Errorf("before the recount: %+v", m.Answers)
	}
	must(t, recount(t, s.counter))
	if m := s.readMetrics(t, s.account, q); m.Answers.Recounting != 0 || m.Answers.OK != 1 || m.Rows[0].MentionRate.Count != 1 {
		t.Errorf("after the recount: %+v, %+v", m.Answers, m.Rows)
	}
	s.verify(t)
}

// TestPreparedBeforeChange: an answer that was matched before a change of brands, and whose transaction begins after
// it, is counted with the new brands.
func TestPreparedBeforeChange(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	s.createBrand(t, s.account, brands.Own, "Kovalt")
	claimed := s.claim(t, 2)
	settle(t, s.dispatcher, completed(claimed[0], &answers.Answer{Text: "Ostrel"})) // the brands and the run are cached
	var ostrel *brands.Brand
	prepared := 0
	d := s.newDispatcher(t, countBy(s.counter), func(ended []jobs.Ended) []any {
		all := prepareBy(s.counter)(ended)
		for _, p := range all {
			if p.(*visibility.Prepared) != nil {
				prepared++
			}
		}
		ostrel = s.createBrand(t, s.account, brands.Competitor, "Ostrel")
		return all
	})
	settle(t, d, completed(claimed[1], &answers.Answer{Text: "Ostrel"}))
	m := s.readMetrics(t, s.account, &visibility.Query{Filter: visibility.Filter{Run: &run}, Brand: &ostrel.ID})
	if want := (visibility.Answers{OK: 1, Recounting: 1, Pending: 4}); prepared != 1 || m.Answers != want || m.Rows[0].MentionRate.Count != 1 {
		t.Errorf("%d prepared; got %+v, %+v, want %+v", prepared, m.Answers, m.Rows, want)
	}
	s.verify(t)
}

// TestMergeDuringBrandChange: chunks that are counted after a change of a brand's kind, while a merge is under way,
// keep the sums of their gaps.
func TestMergeDuringBrandChange(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"FROM brands", "AND small"} { // before each of the statements that may read what changes
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			s, _ := newRunningSite(t, 70)
			kovalt := s.createBrand(t, s.account, brands.Own, "Kovalt")
			of := &answers.Answer{Text: "Kovalt", Citations: []answers.Citation{{Position: 1, URL: "https://example.com/"}}}
			claimed := s.claim(t, 66)
			for _, j := range claimed[:65] { // as many small chunks, so that they are merged before the end of the run
				settle(t, s.dispatcher, completed(j, of))
			}
			changed := false
			merging := newCounter(storetest.WithTracer(t, s.plain, once(statement, func() {
				s.changeBrand(t, s.account, kovalt.ID, brands.Change{Kind: new(brands.Competitor)})
				settle(t, s.dispatcher, completed(claimed[65], of))
				changed = true
			})))
			if n, err := merging.Merge(t.Context()); err != nil || n < 65 || !changed {
				t.Errorf("%d chunks are merged, %v; changed: %t", n, err, changed)
			}
			s.verify(t)
			must(t, recount(t, s.counter))
			s.verify(t)
		})
	}
}

// TestDeletedWhileRecounted: answers that are deleted because of their age while a recount has read them keep its
// facts. With the next change of a brand they are frozen.
func TestDeletedWhileRecounted(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	var all []jobs.Settlement
	for _, j := range s.claim(t, 6) {
		all = append(all, completed(j, &answers.Answer{Text: "Kovalt"}))
	}
	settle(t, s.dispatcher, all...)
	s.exec(t, `UPDATE measurement_runs SET started_at = now() - interval '40 days'`)
	s.exec(t, `UPDATE job_results SET started_at = now() - interval '40 days', finished_at = now() - interval '39 days' WHERE ordinal <= 4`)
	kovalt := s.createBrand(t, s.account, brands.Own, "Kovalt")
	held, release := make(chan struct{}), make(chan struct{})
	slow := newCounter(storetest.WithTracer(t, s.plain, once("INSERT INTO visibility_facts", func() { close(held); <-release })))
	recounted, purged := make(chan error), make(chan error)
	go func() { recounted <- recount(t, slow) }()
	<-held
	go func() {
		_, err := jobs.Purge(t.Context(), s.plain, 20*24*time.Hour, visibility.DeleteAnswers)
		purged <- err
	}()
	storetest.UntilWaiting(t, s.plain, "transactionid")
	close(release)
	must(t, <-recounted)
	must(t, <-purged)
	q := &visibility.Query{Filter: visibility.Filter{Run: &run}}
	if m := s.readMetrics(t, s.account, q); m.Answers != (visibility.Answers{OK: 6}) || m.Rows[0].MentionRate.Count != 6 {
		t.Errorf("after the recount: %+v, %+v", m.Answers, m.Rows)
	}
	s.verify(t)
	s.changeBrand(t, s.account, kovalt.ID, brands.Change{Name: new("Ostrel")})
	must(t, recount(t, s.counter))
	if m := s.readMetrics(t, s.account, q); m.Answers != (visibility.Answers{OK: 6, Frozen: 4}) || m.Rows[0].MentionRate.Count != 4 {
		t.Errorf("after another change: %+v, %+v", m.Answers, m.Rows)
	}
	s.verify(t)
}

// TestErasedWhileRecounted: an account that is erased at any statement of a recount leaves nothing. An erasure that
// falls between the last statement of a recount and its commit, a millisecond later, may leave the row that says up to
// which revision all is recounted.
func TestErasedWhileRecounted(t *testing.T) {
	t.Parallel()
	tables := slices.Concat(jobs.Capability.Tables, brands.Capability.Tables, visibility.Capability.Tables)
	s := newSite(t)
	s.exec(t, insertQuestion)
	for n, more := 1, true; more; n++ {
		s.account = s.newAccount(t)
		run := s.simpleRun(t, s.account, 6)
		settle(t, s.dispatcher, completed(s.claim(t, 1)[0], &answers.Answer{Text: "Kovalt"}))
		s.createBrand(t, s.account, brands.Own, "Kovalt")
		left, held, release := n, make(chan struct{}), make(chan struct{})
		ends := false
		slow := newCounter(storetest.WithTracer(t, s.plain, onStatement(func(_ *pgx.Conn, sql string) {
			if left--; left == 0 && !ends {
				close(held)
				<-release
			}
			ends = strings.Contains(sql, "INSERT INTO visibility_recounts")
		})))
		recounted, erased := make(chan error, 1), make(chan error, 1)
		go func() { recounted <- recount(t, slow) }()
		select {
		case <-held:
		case err := <-recounted:
			must(t, err)
			more = false
			close(release)
			recounted <- nil
		}
		go func() { erased <- s.erase(tables, run) }()
		if more {
			storetest.Eventually(t, "the erasure has ended or waits", func() bool {
				return len(erased) > 0 || s.count(t, `SELECT count(*) FROM pg_locks WHERE NOT granted`) > 0
			})
			close(release)
		}
		must(t, <-recounted)
		must(t, <-erased)
		for _, table := range tables {
			if strings.HasPrefix(table.Name, "visibility_") || strings.HasPrefix(table.Name, "brand") {
				if rows := s.count(t, `SELECT count(*) FROM `+table.Name); rows != 0 {
					t.Errorf("statement %d: %d rows of %s are left", n, rows, table.Name)
				}
			}
		}
	}
}

// erase deletes the account's data in the order of an erasure.
func (s *site) erase(tables []schema.Table, run store.ID) error {
	ctx := context.Background()
	if _, err := (&runs.Purger{Pool: s.plain, Actor: "test", Tables: tables}).Account(ctx, s.account); err != nil {
		return err
	}
	for _, step := range []func(schema.Table) schema.EraseFunc{
		func(t schema.Table) schema.EraseFunc { return t.Erase.First }, func(t schema.Table) schema.EraseFunc { return t.Erase.Last },
	} {
		for _, table := range tables {
			if f := step(table); f != nil {
				if _, err := f(ctx, s.plain, table.Name, s.account); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

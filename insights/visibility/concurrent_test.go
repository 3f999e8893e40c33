package visibility_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

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
		working.Go(until(settled, func() error { return merge(t, c) }))
	}
	working.Go(until(settled, func() error { return w.purge(t) }))
	reading.Go(until(worked, func() error { return w.snapshot(t) }))
	settling.Wait()
	close(settled)
	working.Wait()
	close(worked)
	reading.Wait()

	must(t, recount(t, w.counter))
	must(t, merge(t, w.counter))
	w.checkSnapshot(t)
	m := w.readMetrics(t, w.account, &visibility.Query{})
	if m.Answers.Recounting > 0 || m.Answers.Pending > 0 || !m.Complete {
		t.Errorf("in the end: %+v", m.Answers)
	}
	w.verify(t)
}

// TestSettlementsDuringRecount: a recount that is held before its commit delays neither claims nor settlements of the
// same run, nor changes of brands, reads or other recounts.
func TestSettlementsDuringRecount(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	settle(t, s.dispatcher, completed(s.claim(t, 1)[0], &answers.Answer{Text: "Kovalt"}))
	kovalt := s.createBrand(t, s.account, brands.Own, "Kovalt")
	release := s.heldRecount(t)

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
	must(t, merge(t, s.counter))
	must(t, release())
	must(t, recount(t, s.counter)) // the held one was of the revision before
	check(visibility.Answers{OK: 2, Failed: 1, Pending: 3})
	s.verify(t)
}

// heldRecount starts a recount of another process, and returns when it is about to write facts. release lets it go on,
// and returns when it has ended.
func (s *site) heldRecount(t *testing.T) (release func() error) {
	t.Helper()
	held, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	hold := once("INSERT INTO visibility_facts", func() { close(held); <-resume })
	slow := newCounter(storetest.WithTracer(t, s.plain, hold))
	go func() { done <- recount(t, slow) }()
	<-held
	return func() error {
		close(resume)
		return <-done
	}
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

// TestPreparedAnswers: an answer that was matched before its transaction is not matched again, unless the brands have
// changed meanwhile.
func TestPreparedAnswers(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	s.createBrand(t, s.account, brands.Own, "Kovalt")
	var inTransaction *answers.Answer
	meanwhile := func() {}
	var prepared []bool
	d := s.newDispatcher(t, func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []jobs.Ended) error {
		ended = slices.Clone(ended)
		ended[0].Answer = inTransaction
		return countBy(s.counter)(ctx, tx, b, ended)
	}, func(ended []jobs.Ended) []any {
		all := prepareBy(s.counter)(ended)
		prepared = append(prepared, all[0].(*visibility.Prepared) != nil)
		meanwhile()
		return all
	})
	empty, kovalt, both := &answers.Answer{}, &answers.Answer{Text: "Kovalt"}, &answers.Answer{Text: "Kovalt and Ostrel"}
	claimed := s.claim(t, 3)
	q := &visibility.Query{Filter: visibility.Filter{Run: &run}}

	inTransaction = kovalt
	settle(t, d, completed(claimed[0], kovalt)) // the brands and the run are not cached yet
	inTransaction = empty
	settle(t, d, completed(claimed[1], kovalt))
	m := s.readMetrics(t, s.account, q)
	if m.Answers != (visibility.Answers{OK: 2, Pending: 4}) || m.Rows[0].MentionRate.Count != 2 {
		t.Errorf("with the same brands: %+v, %+v", m.Answers, m.Rows)
	}
	inTransaction = both
	meanwhile = func() { s.createBrand(t, s.account, brands.Competitor, "Ostrel") }
	settle(t, d, completed(claimed[2], both))
	m = s.readMetrics(t, s.account, q)
	if m.Answers != (visibility.Answers{OK: 1, Recounting: 2, Pending: 3}) || m.Rows[1].MentionRate.Count != 1 {
		t.Errorf("with another brand: %+v, %+v", m.Answers, m.Rows)
	}
	if !slices.Equal(prepared, []bool{false, true, true}) {
		t.Errorf("prepared: %v", prepared)
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

// TestDeletedWhileRecounted: answers that are deleted because of their age while a recount has read them, or later, keep
// its facts. With the next change of a brand they are frozen.
func TestDeletedWhileRecounted(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 6)
	settle(t, s.dispatcher, completedAll(s.claim(t, 6), &answers.Answer{Text: "Kovalt"})...)
	s.age(t, run, 1, 2, 3, 4)
	kovalt := s.createBrand(t, s.account, brands.Own, "Kovalt")
	release := s.heldRecount(t)
	purged := make(chan error)
	go func() { purged <- s.purge(t) }()
	storetest.UntilWaiting(t, s.plain, "transactionid")
	must(t, release())
	must(t, <-purged)
	q := &visibility.Query{Filter: visibility.Filter{Run: &run}}
	if m := s.readMetrics(t, s.account, q); m.Answers != (visibility.Answers{OK: 6}) || m.Rows[0].MentionRate.Count != 6 {
		t.Errorf("after the recount: %+v, %+v", m.Answers, m.Rows)
	}
	s.verify(t)
	s.age(t, run, 5)
	must(t, s.purge(t))
	s.verify(t)
	s.changeBrand(t, s.account, kovalt.ID, brands.Change{Name: new("Ostrel")})
	must(t, recount(t, s.counter))
	if m := s.readMetrics(t, s.account, q); m.Answers != (visibility.Answers{OK: 6, Frozen: 5}) || m.Rows[0].MentionRate.Count != 5 {
		t.Errorf("after another change: %+v, %+v", m.Answers, m.Rows)
	}
	s.age(t, run, 6)
	must(t, s.purge(t))
	s.changeBrand(t, s.account, kovalt.ID, brands.Change{Name: new("Kovalt")})
	if m := s.readMetrics(t, s.account, q); m.Answers != (visibility.Answers{OK: 6, Frozen: 6}) {
		t.Errorf("all answers are deleted, but a recount is expected: %+v", m.Answers)
	}
	s.verify(t)
}

// TestErasedWhileRecounted: an account that is erased at any statement of a recount leaves nothing.
func TestErasedWhileRecounted(t *testing.T) {
	t.Parallel()
	tables := slices.Concat(jobs.Capability.Tables, brands.Capability.Tables, visibility.Capability.Tables)
	s := newSite(t)
	s.exec(t, insertQuestion)
	for n, more := 1, true; more; n++ {
		s.account = s.newAccount(t)
		s.simpleRun(t, s.account, 6)
		settle(t, s.dispatcher, completed(s.claim(t, 1)[0], &answers.Answer{Text: "Kovalt"}))
		s.createBrand(t, s.account, brands.Own, "Kovalt")
		left, held, release := n, make(chan struct{}), make(chan struct{})
		slow := newCounter(storetest.WithTracer(t, s.plain, onStatement(func(*pgx.Conn, string) {
			if left--; left == 0 {
				close(held)
				<-release
			}
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
		go func() { erased <- s.erase(tables) }()
		if more {
			storetest.Eventually(t, "the erasure has ended or waits", func() bool {
				return len(erased) > 0 || storetest.Waiting(t, s.plain) > 0
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
func (s *site) erase(tables []schema.Table) error {
	ctx := context.Background()
	if _, err := (&runs.Purger{Pool: s.plain, Actor: "test", Tables: tables}).Account(ctx, s.account); err != nil {
		return err
	}
	for _, step := range []func(schema.Erasure) schema.EraseFunc{
		func(e schema.Erasure) schema.EraseFunc { return e.First }, func(e schema.Erasure) schema.EraseFunc { return e.Last },
	} {
		for _, table := range tables {
			if erase := step(table.Erase); erase != nil {
				if _, err := erase(ctx, s.plain, table.Name, s.account); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

package jobs

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"aiv/store"

	"github.com/google/go-cmp/cmp"
)

// TestEachJobOnce: workers of two processes that complete, fail, release, retry and forget jobs of several accounts
// settle each of them once, without errors: on Citus they lock rows on several servers in different orders. Some of
// them repeat what they have sent.
func TestEachJobOnce(t *testing.T) {
	s := newSite(t)
	w := &workers{t: t, places: make(map[Key]string), settled: make(map[Key]int), held: make(map[Key]int)}
	create := func(account store.ID, models string, questions, repetitions, jobs int) {
		run := s.orderOf(account, models, questions, repetitions)
		for o := range int32(jobs) {
			w.places[Key{account, run, o + 1}] = placeOf(models, questions, repetitions, o+1)
		}
	}
	a := s.account()
	create(a, "m1 m3 m2", 15, 2, 90)
	create(s.account(), "m2", 3, 1, 3)
	create(a, "m1", 8, 5, 40)
	for range 6 {
		account := s.account()
		create(account, "m1", 4, 1, 4)
		create(account, "m1", 4, 1, 4)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	processes := []*Dispatcher{s.process(nil).d, s.process(nil).d}
	var wg sync.WaitGroup
	for n := range 8 {
		r := rand.New(rand.NewPCG(uint64(n), 7))
		wg.Go(func() {
			for w.left() > 0 && ctx.Err() == nil && w.work(ctx, processes[n%2], r) {
			}
		})
	}
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for w.left() > 0 && ctx.Err() == nil {
			<-tick.C
			_, lost := s.pool.Exec(ctx, `UPDATE job_leases SET until = now(), tries = 0
				WHERE state = 'held' AND until < now() + interval '59 s' AND until > now()`) // forgotten jobs come back
			_, swept := processes[0].Sweep(ctx)
			violations, err := store.Verify(ctx, s.pool, Invariants())
			for _, v := range violations {
				t.Errorf("while jobs are worked: %s: %s", v.Invariant.Doc, v.Rows)
			}
			if err := errors.Join(lost, swept, err); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Wait()
	equal(t, 0, w.left(), "jobs are left")
	for k, n := range w.settled {
		equal(t, 1, n, "settlements of ", k)
	}
	const open = `finished_at IS NULL OR jobs_completed + jobs_failed < total_jobs`
	equal(t, 0, s.count(`SELECT count(*) FROM measurement_runs WHERE `+open), "open runs")
}

// workers are the workers of TestEachJobOnce, with what they know of all jobs.
type workers struct {
	t       *testing.T
	places  map[Key]string
	mu      sync.Mutex
	settled map[Key]int
	held    map[Key]int // the highest attempt handed out
}

func (w *workers) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.places) - len(w.settled)
}

// work claims and settles some jobs. It returns false after an error.
func (w *workers) work(ctx context.Context, d *Dispatcher, r *rand.Rand) bool {
	got, err := d.Claim(ctx, request(ClaimRequest{Limit: 1 + r.IntN(30), Wait: time.Second}))
	if err != nil {
		w.t.Error(err)
		return false
	}
	settlements := w.outcomes(got, r)
	if len(settlements) == 0 {
		return true
	}
	first, err := d.Settle(ctx, Reporter{}, settlements)
	if err != nil {
		w.t.Error(err)
		return false
	}
	if r.IntN(2) == 0 {
		again, err := d.Settle(ctx, Reporter{}, settlements)
		if diff := cmp.Diff(first, again); diff != "" || err != nil {
			w.t.Errorf("repeated (%v): %s", err, diff)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range settlements {
		if (o.Outcome == Completed || o.Outcome == Failed) && first[i].State == Settled { // stale: the lease has ended
			w.settled[o.Key]++
		}
	}
	return true
}

// outcomes returns what becomes of claimed jobs. Some are forgotten.
func (w *workers) outcomes(got []Job, r *rand.Rand) (settlements []Settlement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range got {
		if j.Attempt <= w.held[j.Key] {
			w.t.Errorf("attempt %d of %s was handed out after attempt %d", j.Attempt, j.Key, w.held[j.Key])
		}
		w.held[j.Key] = j.Attempt
		equal(w.t, w.places[j.Key], place(j), "attempt ", j.Attempt, " of ", j.Key)
		switch n := r.IntN(10); {
		case n <= 1:
			settlements = append(settlements, settlement(j, Released))
		case n == 2:
			settlements = append(settlements, settlement(j, Failed))
		case n == 3: // forgotten
		case n == 4 && j.Attempt == 1:
			settlements = append(settlements, after(100*time.Millisecond, j, Retry))
		default:
			settlements = append(settlements, settlement(j, Completed))
		}
	}
	return settlements
}

// TestLimitHoldsOverTwoProcesses: over two processes, no more jobs are claimed than a limit allows, and all that it
// allows.
func TestLimitHoldsOverTwoProcesses(t *testing.T) {
	s := newSite(t)
	other := s.on(s.dispatcher(Config{Pool: s.open(t, "")}))
	for range 3 {
		s.orderOf(s.account(), "m1 m2", 100, 1)
	}
	// all claims as many jobs as there are, from everywhere at once, and counts them by provider.
	all := func() (got []Job, of map[string]int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for {
					some := []*site{s, other}[n%2].claim(7)
					if len(some) == 0 {
						return
					}
					mu.Lock()
					got = append(got, some...)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		of = make(map[string]int)
		for _, j := range got {
			of[j.Provider]++
		}
		return got, of
	}
	s.limit("p1", nil, new(40))
	s.limit("p2", nil, new(0))
	first, of := all()
	equal(t, map[string]int{"p1": 40}, of, "in flight")
	s.settle(Completed, first[:15]...)
	other.settle(Released, first[15:20]...)
	_, of = all()
	equal(t, map[string]int{"p1": 20}, of, "in flight after 20 were settled")

	s.exec(`DELETE FROM provider_minutes`) // the claims before count for no limit
	s.limit("p1", new(0), nil)
	s.limit("p2", new(33), nil)
	const minute = `SELECT extract(minute FROM now())::integer`
	began := s.count(minute)
	claimed, of := all()
	if s.count(minute) == began {
		equal(t, map[string]int{"p2": 33}, of, "per minute")
	}
	s.limit("p2", nil, nil)
	rest, _ := all()
	equal(t, 300, len(claimed)+len(rest), "jobs of p2")
}

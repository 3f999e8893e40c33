package jobs

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestEachJobOnce: workers of two processes that complete, fail, release, retry and forget jobs of several accounts
// settle each of them once, without errors: on Citus they lock rows on several servers in different orders. Some of
// them repeat what they have sent.
func TestEachJobOnce(t *testing.T) {
	s := newSite(t)
	a := s.account()
	s.orderOf(a, "m1 m3 m2", 15, 2)
	s.orderOf(s.account(), "m2", 3, 1)
	s.orderOf(a, "m1", 8, 5)
	for range 6 {
		account := s.account()
		s.orderOf(account, "m1", 4, 1)
		s.orderOf(account, "m1", 4, 1)
	}
	w := &workers{site: s, jobs: 90 + 3 + 40 + 6*8, settled: make(map[Key]bool), held: make(map[Key]Job)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	processes := []*Dispatcher{s.process().d, s.process().d}
	var wg sync.WaitGroup
	for n := range 8 {
		r := rand.New(rand.NewPCG(uint64(n), 7))
		wg.Go(func() {
			for ctx.Err() == nil && !w.done() {
				if err := w.work(ctx, processes[n%2], r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil && !w.done() {
			<-time.After(100 * time.Millisecond)
			s.exec(`UPDATE job_leases SET until = now(), tries = 0
				WHERE state = 'held' AND until < now() + interval '59 s' AND until > now()`) // forgotten jobs come back
			s.sweep()
			s.check()
		}
	})
	wg.Wait()
	equal(t, w.jobs, len(w.settled), "settled jobs")
	const open = `finished_at IS NULL OR jobs_completed + jobs_failed < total_jobs`
	equal(t, 0, s.count(`SELECT count(*) FROM measurement_runs WHERE `+open), "open runs")
}

// workers are the workers of TestEachJobOnce, with what they know of all jobs.
type workers struct {
	*site
	jobs    int // to settle
	mu      sync.Mutex
	settled map[Key]bool
	held    map[Key]Job // the latest attempt handed out
}

func (w *workers) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.settled) == w.jobs
}

// work claims some jobs, and settles them or forgets them.
func (w *workers) work(ctx context.Context, d *Dispatcher, r *rand.Rand) error {
	got, err := d.Claim(ctx, request(ClaimRequest{Limit: 1 + r.IntN(30), Wait: time.Second}))
	if err != nil {
		return err
	}
	var settlements []Settlement
	w.mu.Lock()
	for _, j := range got {
		if before, again := w.held[j.Key]; again && (j.Attempt <= before.Attempt || place(j) != place(before)) {
			w.t.Errorf("%s was handed out as attempt %d at %s after attempt %d at %s", j.Key, j.Attempt, place(j), before.Attempt, place(before))
		}
		w.held[j.Key] = j
		switch n := r.IntN(10); {
		case n <= 1:
			settlements = append(settlements, settlement(j, Released))
		case n == 2:
			settlements = append(settlements, settlement(j, Failed))
		case n == 3: // forgotten
		case n == 4 && j.Attempt == 1:
			settlements = append(settlements, settlement(j, Retry, 100*time.Millisecond))
		default:
			settlements = append(settlements, settlement(j, Completed))
		}
	}
	w.mu.Unlock()
	first, err := d.Settle(ctx, Reporter{}, settlements)
	if err == nil && r.IntN(2) == 0 {
		var again []Reply
		again, err = d.Settle(ctx, Reporter{}, settlements)
		equal(w.t, first, again, "repeated")
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range settlements {
		if (o.Outcome == Completed || o.Outcome == Failed) && first[i].State == Settled { // stale: the lease has ended
			if w.settled[o.Key] {
				w.t.Errorf("%s is settled again", o.Key)
			}
			w.settled[o.Key] = true
		}
	}
	return nil
}

// TestLimitHoldsOverTwoProcesses: over two processes, no more jobs are claimed than a limit allows, and all that it
// allows.
func TestLimitHoldsOverTwoProcesses(t *testing.T) {
	s := newSite(t)
	other := s.on(s.dispatcher(Config{Pool: s.open("")}))
	for range 3 {
		s.orderOf(s.account(), "m1 m2", 100, 1)
	}
	// all claims as many jobs as there are, from everywhere at once, and counts them by provider.
	all := func() (got []Job, of map[string]int) {
		var mu sync.Mutex
		of = make(map[string]int)
		storetest.AtOnce(8, func(n int) {
			process := []*site{s, other}[n%2]
			for some := process.claim(7); len(some) > 0; some = process.claim(7) {
				mu.Lock()
				for _, j := range some {
					of[j.Provider]++
				}
				got = append(got, some...)
				mu.Unlock()
			}
		})
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

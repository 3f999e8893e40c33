package jobs_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// process returns a Dispatcher with new connections, as another process has, and runs its maintenance.
func (s *site) process(t testing.TB) *jobs.Dispatcher {
	t.Helper()
	d := jobs.New(jobs.Config{Pool: s.open(t), Timeout: 20 * time.Second, MaxWaiting: 1000, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { d.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return d
}

// TestEachJobOnce: workers of two processes that complete, fail, release, renew and forget jobs settle each of them once. Some
// of them repeat what they have sent.
func TestEachJobOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	processes := []*jobs.Dispatcher{s.process(t), s.process(t)}
	a, b := s.account(t), s.account(t)
	places := make(map[jobs.Key]string)
	var ordered []store.ID
	create := func(account store.ID, models []string, questions, repetitions int) {
		run := s.createRun(t, account, models, questions, repetitions)
		ordered = append(ordered, run)
		for o := range int32(len(models) * questions * repetitions) {
			places[jobs.Key{Account: account, Run: run, Ordinal: o + 1}] = placeOf(models, questions, repetitions, o+1)
		}
	}
	create(a, []string{"m1", "m3", "m2"}, 25, 2)
	create(b, []string{"m2"}, 3, 1)
	create(a, []string{"m1"}, 10, 5)
	var mu sync.Mutex
	completed := make(map[jobs.Key]int)
	held := make(map[jobs.Key]int) // the highest attempt handed out
	var left atomic.Int64
	left.Store(150 + 3 + 50)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for n := range 6 {
		d := processes[n%2]
		r := rand.New(rand.NewPCG(uint64(n), 7))
		wg.Go(func() {
			for left.Load() > 0 && ctx.Err() == nil {
				got, err := d.Claim(ctx, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1 + r.IntN(30), Lease: time.Minute, Wait: time.Second})
				if err != nil {
					t.Error(err)
					return
				}
				var settlements []jobs.Settlement
				mu.Lock()
				for _, j := range got {
					if j.Attempt <= held[j.Key] {
						t.Errorf("attempt %d of %s was handed out after attempt %d", j.Attempt, j.Key, held[j.Key])
					}
					held[j.Key] = j.Attempt
					if got, want := place(j), places[j.Key]; got != want {
						t.Errorf("attempt %d of %s asks %s, want %s", j.Attempt, j.Key, got, want)
					}
					outcome := jobs.Completed
					switch r.IntN(10) {
					case 0, 1:
						outcome = jobs.Released
					case 2:
						outcome = jobs.Failed
					case 3:
						continue // forgotten
					}
					settlements = append(settlements, settlement(j, outcome))
				}
				mu.Unlock()
				if len(settlements) == 0 {
					continue
				}
				first, err := d.Settle(ctx, nil, settlements)
				if err != nil {
					t.Error(err)
					return
				}
				if r.IntN(2) == 0 {
					again, err := d.Settle(ctx, nil, settlements)
					if diff := cmp.Diff(first, again); diff != "" || err != nil {
						t.Errorf("repeated (%v): %s", err, diff)
					}
				}
				mu.Lock()
				for i, o := range settlements {
					if o.Outcome != jobs.Released && first[i].State == jobs.Settled { // stale: the lease has ended
						completed[o.Key]++
						left.Add(-1)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Go(func() { // forgotten jobs come back
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for left.Load() > 0 && ctx.Err() == nil {
			<-tick.C
			_, err := s.pool.Exec(ctx, `UPDATE job_leases SET until = now(), tries = 0 WHERE state = 'held' AND until < now() + interval '59 s'
				AND until > now()`)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() { // the invariants hold at every instant
		for left.Load() > 0 && ctx.Err() == nil {
			violations, err := store.Verify(ctx, s.pool, jobs.Invariants())
			for _, v := range violations {
				t.Errorf("while jobs are worked: %s: %s", v.Invariant.Doc, v.Rows)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
	for k, n := range completed {
		if n != 1 {
			t.Errorf("%s was settled %d times", k, n)
		}
	}
	for _, id := range ordered {
		if r := s.run(t, id); !r.Finished || r.Completed+r.Failed != r.Total {
			t.Errorf("run %+v", r)
		}
	}
	s.check(t)
}

// TestManyAccounts: claims and settlements of many accounts at once, of jobs that are tried again, do not fail. On Citus they lock rows on
// several servers in different orders.
func TestManyAccounts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const accounts, runsOfEach, jobsOfEach = 8, 6, 10
	var created []store.ID
	for range accounts {
		account := s.account(t)
		for range runsOfEach {
			created = append(created, s.createRun(t, account, []string{"m1"}, jobsOfEach, 1))
		}
	}
	var left atomic.Int64
	left.Store(accounts * runsOfEach * jobsOfEach)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	processes := []*jobs.Dispatcher{s.process(t), s.process(t)}
	var wg sync.WaitGroup
	for n := range 8 {
		d := processes[n%2]
		wg.Go(func() {
			for left.Load() > 0 && ctx.Err() == nil {
				got, err := d.Claim(ctx, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 10, Lease: time.Minute, Wait: 100 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				var settlements []jobs.Settlement
				for _, j := range got {
					if j.Attempt == 1 && j.Key.Ordinal%4 == 0 {
						again := settlement(j, jobs.Retry)
						again.After = 100 * time.Millisecond
						settlements = append(settlements, again)
						continue
					}
					settlements = append(settlements, settlement(j, jobs.Completed))
					left.Add(-1)
				}
				if _, err := d.Settle(ctx, nil, settlements); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, id := range created {
		if r := s.run(t, id); !r.Finished || r.Completed != jobsOfEach {
			t.Errorf("run %+v", r)
		}
	}
	s.check(t)
}

// TestLimits: over two processes, no more jobs are claimed than a limit allows, and all that it allows.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	processes := []*jobs.Dispatcher{s.dispatcher(t), jobs.New(jobs.Config{Pool: s.open(t), Timeout: 20 * time.Second, MaxWaiting: 1000})}
	for range 3 {
		s.createRun(t, s.account(t), []string{"m1", "m2"}, 100, 1)
	}
	// all claims as many jobs as there are, from everywhere at once.
	all := func() (got []jobs.Job) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for {
					some := claim(t, processes[n%2], 7)
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
		return got
	}
	of := func(claimed []jobs.Job) map[string]int {
		n := make(map[string]int)
		for _, j := range claimed {
			n[j.Provider]++
		}
		return n
	}
	admin := &jobs.ProviderAdmin{Pool: s.pool, Actor: "test"}
	must(t, admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true, Value: new(40)}}))
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true, Value: new(0)}}))
	first := all()
	if diff := cmp.Diff(map[string]int{"p1": 40}, of(first)); diff != "" {
		t.Errorf("in flight: %s", diff)
	}
	settle(t, processes[0], jobs.Completed, first[:15]...)
	settle(t, processes[1], jobs.Released, first[15:20]...)
	if diff := cmp.Diff(map[string]int{"p1": 20}, of(all())); diff != "" {
		t.Errorf("in flight after 20 were settled: %s", diff)
	}

	// The minute may end during the test, so the claims are moved into one that does not.
	s.exec(t, `UPDATE provider_minutes SET minute = now() + interval '1 hour'`)
	must(t, admin.SetLimits(t.Context(), "p1", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true}, PerMinute: jobs.ProviderLimit{Set: true, Value: new(0)}}))
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{InFlight: jobs.ProviderLimit{Set: true}, PerMinute: jobs.ProviderLimit{Set: true, Value: new(33)}}))
	var claimed []jobs.Job
	minutes := s.count(t, `SELECT extract(minute FROM now())::integer`)
	claimed = all()
	if now := s.count(t, `SELECT extract(minute FROM now())::integer`); now == minutes {
		if diff := cmp.Diff(map[string]int{"p2": 33}, of(claimed)); diff != "" {
			t.Errorf("per minute: %s", diff)
		}
	}
	must(t, admin.SetLimits(t.Context(), "p2", jobs.ProviderLimits{PerMinute: jobs.ProviderLimit{Set: true}}))
	must(t, admin.Pause(t.Context(), "p2", "reason"))
	if n := len(all()); n != 0 {
		t.Errorf("%d jobs of a paused provider", n)
	}
	must(t, admin.Resume(t.Context(), "p2", "reason"))
	s.exec(t, `UPDATE provider_dependencies SET met = false WHERE provider_code = 'p2' AND dependency = 'contract'`)
	if n := len(all()); n != 0 {
		t.Errorf("%d jobs of a provider without a contract", n)
	}
	s.exec(t, `UPDATE provider_dependencies SET met = true`)
	if n := len(all()); n != 300-len(claimed) {
		t.Errorf("%d jobs of p2 after %d of 300", n, len(claimed))
	}
	s.check(t)
}

// TestWait: a waiting claim gets a job soon after there is one, and ends when the process stops or the client leaves.
func TestWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.process(t)
	type answer struct {
		jobs []jobs.Job
		err  error
	}
	wait := func(ctx context.Context, providers []string) chan answer {
		c := make(chan answer, 1)
		go func() {
			got, err := d.Claim(ctx, &jobs.ClaimRequest{Worker: store.NewID(), Providers: providers, Limit: 1, Lease: time.Minute, Wait: time.Minute})
			c <- answer{got, err}
		}()
		return c
	}
	leaving, leave := context.WithCancel(t.Context())
	other, gone, first := wait(t.Context(), []string{"p2"}), wait(leaving, []string{"p2"}), wait(t.Context(), nil)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	job := (<-first).jobs
	if len(job) != 1 {
		t.Fatalf("%d jobs", len(job))
	}
	for _, o := range []jobs.Outcome{jobs.Released, jobs.Throttled} {
		next := wait(t.Context(), []string{"p1"})
		settle(t, d, o, job...)
		if o == jobs.Throttled {
			s.pass(t, time.Minute)
		}
		if job = (<-next).jobs; len(job) != 1 {
			t.Fatalf("%d jobs after %s", len(job), o)
		}
	}
	leave()
	if a := <-gone; a.err == nil {
		t.Errorf("a client that left got %v", a)
	}
	d.Stop()
	if a := <-other; a.err != nil || len(a.jobs) != 0 {
		t.Errorf("at the end: %v", a)
	}
	if a := <-wait(t.Context(), nil); a.err != nil || len(a.jobs) != 0 {
		t.Errorf("after the end: %v", a)
	}
}

// TestNow: a dispatcher knows the database's time before its first transaction.
func TestNow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const ahead = 48 * time.Hour
	d := jobs.New(jobs.Config{Pool: storetest.WithClockAhead(t, s.pool, ahead)})
	for range 2 {
		now, err := d.Now(t.Context())
		if off := time.Until(now) - ahead; err != nil || off.Abs() > time.Minute {
			t.Errorf("%v off, %v", off, err)
		}
	}
}

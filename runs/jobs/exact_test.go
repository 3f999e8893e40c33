package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// process returns a Dispatcher with new connections, as another process has, and runs its tasks.
func (s *site) process(t testing.TB) *jobs.Dispatcher {
	t.Helper()
	return s.processOn(t, s.open(t))
}

func (s *site) processOn(t testing.TB, pool *pgxpool.Pool) *jobs.Dispatcher {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	d := jobs.New(jobs.Config{Pool: pool, Timeout: 20 * time.Second, MaxWaiting: 1000, Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { task.NewRunner(log, d.Tasks()).Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait(); d.Stop() })
	return d
}

// TestEachJobOnce: workers of two processes that complete, fail, release, retry and forget jobs of several accounts settle
// each of them once, without errors: on Citus they lock rows on several servers in different orders. Some of them repeat
// what they have sent.
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
	create(a, []string{"m1", "m3", "m2"}, 15, 2)
	create(b, []string{"m2"}, 3, 1)
	create(a, []string{"m1"}, 8, 5)
	for range 6 {
		account := s.account(t)
		create(account, []string{"m1"}, 4, 1)
		create(account, []string{"m1"}, 4, 1)
	}
	var mu sync.Mutex
	completed := make(map[jobs.Key]int)
	held := make(map[jobs.Key]int) // the highest attempt handed out
	var left atomic.Int64
	left.Store(int64(len(places)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for n := range 8 {
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
					done := settlement(j, jobs.Completed)
					switch r.IntN(10) {
					case 0, 1:
						done = settlement(j, jobs.Released)
					case 2:
						done = settlement(j, jobs.Failed)
					case 3:
						continue // forgotten
					case 4:
						if j.Attempt == 1 {
							done = settlement(j, jobs.Retry)
							done.After = 100 * time.Millisecond
						}
					}
					settlements = append(settlements, done)
				}
				mu.Unlock()
				if len(settlements) == 0 {
					continue
				}
				first, err := d.Settle(ctx, jobs.Reporter{}, settlements)
				if err != nil {
					t.Error(err)
					return
				}
				if r.IntN(2) == 0 {
					again, err := d.Settle(ctx, jobs.Reporter{}, settlements)
					if diff := cmp.Diff(first, again); diff != "" || err != nil {
						t.Errorf("repeated (%v): %s", err, diff)
					}
				}
				mu.Lock()
				for i, o := range settlements {
					if (o.Outcome == jobs.Completed || o.Outcome == jobs.Failed) && first[i].State == jobs.Settled { // stale: the lease has ended
						completed[o.Key]++
						left.Add(-1)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for left.Load() > 0 && ctx.Err() == nil {
			<-tick.C
			_, lost := s.pool.Exec(ctx, `UPDATE job_leases SET until = now(), tries = 0 WHERE state = 'held' AND until < now() + interval '59 s'
				AND until > now()`) // forgotten jobs come back
			_, swept := processes[0].Sweep(ctx)
			violations, err := store.Verify(ctx, s.pool, jobs.Invariants())
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
	equal(t, 0, left.Load(), "jobs are left")
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
}

// TestDatabaseTimeIsKnownFirst: a dispatcher knows the database's time before its first transaction.
func TestDatabaseTimeIsKnownFirst(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	const ahead = 48 * time.Hour
	d := jobs.New(jobs.Config{Pool: storetest.WithClockAhead(t, s.pool, ahead)})
	for range 2 {
		now, err := d.Now(t.Context())
		if off := time.Until(now) - ahead; err != nil || off.Abs() > time.Minute {
			t.Errorf("%v off, %v", off, err)
		}
	}
}

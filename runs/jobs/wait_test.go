package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/auth"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestWaitingClaimGetsAJob: a waiting claim gets a job soon after there is one, and ends when the process stops or the client leaves.
func TestWaitingClaimGetsAJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.process(t)
	wait := func(ctx context.Context, providers []string) <-chan claimed {
		return goClaim(ctx, d, &jobs.ClaimRequest{Worker: store.NewID(), Providers: providers, Limit: 1, Lease: time.Minute, Wait: time.Minute})
	}
	leaving, leave := context.WithCancel(t.Context())
	other, gone, first := wait(t.Context(), []string{"p2"}), wait(leaving, []string{"p2"}), wait(t.Context(), nil)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	job := (<-first).jobs
	for _, o := range []jobs.Outcome{jobs.Released, jobs.Throttled} {
		next := wait(t.Context(), []string{"p1"})
		settle(t, d, o, job...)
		if o == jobs.Throttled {
			s.pass(t, time.Minute)
		}
		job = (<-next).jobs
	}
	equal(t, 1, len(job), "jobs after all")
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

// TestManyWait: the poll that finds a new run hands out as many jobs as there are to the claims that wait, one each, and
// wakes few claims for a few jobs.
func TestManyWait(t *testing.T) {
	t.Parallel()
	const waiting = 100
	s, d := start(t)
	a := s.account(t)
	var served atomic.Int64
	var wg sync.WaitGroup
	for range waiting {
		wg.Go(func() {
			got, err := d.Claim(t.Context(), &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute, Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			served.Add(int64(len(got)))
		})
	}
	defer wg.Wait()
	defer d.Stop()
	storetest.Eventually(t, "all claims wait", func() bool { return d.Asleep() == waiting })
	before := d.Claims()
	s.createRun(t, a, []string{"m1"}, 3, 1)
	must(t, d.Poll(t.Context()))
	storetest.Eventually(t, "three jobs are claimed", func() bool { return served.Load() == 3 })
	storetest.Eventually(t, "the others wait", func() bool { return d.Asleep() == waiting-3 })
	// The poll wakes one claim, and each of the three that get jobs wakes two.
	equal(t, 7, d.Claims()-before, "claims were made for three jobs")
	s.createRun(t, a, []string{"m1"}, waiting-3, 1)
	must(t, d.Poll(t.Context()))
	storetest.Eventually(t, "all jobs are claimed", func() bool { return served.Load() == waiting })
}

// TestRevokedClaims: many waiting claims of a worker that is revoked do not delay another one.
func TestRevokedClaims(t *testing.T) {
	t.Parallel()
	const failing = 100 // more than a poll each would wake in time
	s := newSite(t)
	d := s.process(t)
	revoked := s.worker(t)
	wait := func(worker store.ID) ([]jobs.Job, error) {
		return d.Claim(t.Context(), &jobs.ClaimRequest{Worker: worker, Limit: 1, Lease: time.Minute, Wait: 10 * time.Second})
	}
	waiting := func(n int) {
		t.Helper()
		storetest.Eventually(t, fmt.Sprint(n, " claims wait"), func() bool { return d.Stats().Waiting == n })
	}
	var wg sync.WaitGroup
	for range failing {
		wg.Go(func() {
			if got, err := wait(revoked); !errors.Is(err, auth.ErrUnknownWorker) {
				t.Errorf("a claim of the revoked worker: %d jobs, %v", len(got), err)
			}
		})
	}
	waiting(failing)
	wg.Go(func() {
		if got, err := wait(store.NewID()); err != nil || len(got) != 1 {
			t.Errorf("the other claim: %d jobs, %v", len(got), err)
		}
	})
	waiting(failing + 1)
	s.exec(t, `UPDATE workers SET revoked_at = now()`)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	wg.Wait()
}

// TestSweepDoesNotDelayClaims: while a sweep is not done, claims that wait get jobs.
func TestSweepDoesNotDelayClaims(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	claim(t, s.dispatcher(t), 1)
	s.pass(t, 2*time.Minute)
	stop := newStopper(jobs.ReadClock) // when the sweep has locked the run
	d := s.processOn(t, storetest.WithTracer(t, s.pool, stop))
	release := sync.OnceFunc(func() { close(stop.release) })
	t.Cleanup(release) // before the process is ended, which waits for the sweep
	<-stop.stopped
	waiting := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute, Wait: storetest.Patience})
	storetest.Eventually(t, "the claim waits", func() bool { return d.Stats().Waiting == 1 })
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	if got := <-waiting; got.err != nil || len(got.jobs) != 1 {
		t.Errorf("%d jobs, %v", len(got.jobs), got.err)
	}
}

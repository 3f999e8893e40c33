package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestWaitingClaimGetsAJob: a waiting claim gets a job soon after there is one, and ends when the process stops or the
// client leaves.
func TestWaitingClaimGetsAJob(t *testing.T) {
	s := newSite(t).process()
	wait := func(ctx context.Context, providers ...string) <-chan claimed {
		return s.goClaim(ctx, ClaimRequest{Providers: providers, Wait: time.Minute})
	}
	leaving, leave := context.WithCancel(t.Context())
	other, gone, first := wait(t.Context(), "p2"), wait(leaving, "p2"), wait(t.Context())
	s.order(1)
	job := s.jobsOf(first)
	for _, o := range []Outcome{Released, Throttled} {
		next := wait(t.Context(), "p1")
		s.settle(o, job...)
		if o == Throttled {
			s.pass(time.Minute)
		}
		job = s.jobsOf(next)
	}
	equal(t, 1, len(job), "jobs after all")
	leave()
	if got := <-gone; got.err == nil {
		t.Errorf("a client that left got %v", got)
	}
	s.d.Stop()
	equal(t, 0, len(s.jobsOf(other)), "jobs at the end")
	equal(t, 0, len(s.jobsOf(wait(t.Context()))), "jobs after the end")
}

// untilAsleep waits until n claims wait for jobs, of which none has been woken.
func (s *site) untilAsleep(n int) {
	s.t.Helper()
	storetest.Eventually(s.t, fmt.Sprint(n, " claims wait"), func() bool {
		w := &s.d.waiters
		w.mu.Lock()
		defer w.mu.Unlock()
		for e := w.waiting.Front(); e != nil; e = e.Next() {
			if e.Value.(*waiter).awake {
				return false
			}
		}
		return w.waiting.Len() == n
	})
}

// TestManyWait: the poll that finds a new run hands out as many jobs as there are to the claims that wait, one each,
// and wakes few claims for a few jobs.
func TestManyWait(t *testing.T) {
	const waiting = 100
	s := newSite(t)
	var claims []<-chan claimed
	for range waiting {
		claims = append(claims, s.goClaim(t.Context(), ClaimRequest{Wait: time.Minute}))
	}
	s.untilAsleep(waiting)
	before := s.d.claims.Stats().Inputs
	s.order(3)
	must(t, s.d.poll(t.Context()))
	s.untilAsleep(waiting - 3)
	// The poll wakes one claim, and each of the three that get jobs wakes two.
	equal(t, uint64(7), s.d.claims.Stats().Inputs-before, "claims were made for three jobs")
	s.order(waiting - 3)
	must(t, s.d.poll(t.Context()))
	for _, c := range claims {
		equal(t, 1, len(s.jobsOf(c)), "jobs of a claim")
	}
}

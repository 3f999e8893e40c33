package jobs

import (
	"context"
	"testing"
	"time"
)

// TestWaitingClaimGetsAJob: a waiting claim gets a job soon after there is one, and ends when the process stops or the
// client leaves.
func TestWaitingClaimGetsAJob(t *testing.T) {
	s := newSite(t).process()
	wait := func(ctx context.Context, providers ...string) <-chan claimed {
		return s.goClaim(ctx, ClaimRequest{Providers: providers, Wait: time.Minute})
	}
	s.order(1)
	equal(t, "settled", s.settle(Completed, s.jobsOf(wait(t.Context()))...), "there is a job already")
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

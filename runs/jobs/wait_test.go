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
	wait := func(ctx context.Context, providers ...string) func() ([]Job, error) {
		return s.goClaim(ctx, ClaimRequest{Providers: providers, Wait: time.Minute})
	}
	want := func(n int, claim func() ([]Job, error), what string) []Job {
		t.Helper()
		got, err := claim()
		must(t, err)
		equal(t, n, len(got), what)
		return got
	}
	s.order(1)
	s.settle(Completed, want(1, wait(t.Context()), "there is a job already")...)
	leaving, leave := context.WithCancel(t.Context())
	other, gone, first := wait(t.Context(), "p2"), wait(leaving, "p2"), wait(t.Context())
	s.order(1)
	job := want(1, first, "a run was created")
	for _, o := range []Outcome{Released, Throttled} {
		next := wait(t.Context(), "p1")
		s.settle(o, job...)
		if o == Throttled {
			s.pass(time.Minute)
		}
		job = want(1, next, string(o))
	}
	leave()
	if got, err := gone(); err == nil {
		t.Errorf("a client that left got %v", got)
	}
	s.d.Stop()
	want(0, other, "at the end")
	want(0, wait(t.Context()), "after the end")
}

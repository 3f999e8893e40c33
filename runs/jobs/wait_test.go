package jobs

import (
	"testing"
	"time"
)

// TestWaitingClaimGetsAJob: a waiting claim gets a job soon after there is one, and ends when the process stops.
func TestWaitingClaimGetsAJob(t *testing.T) {
	s := newSite(t).process()
	wait := func(providers ...string) func() ([]Job, error) {
		return s.goClaim(t.Context(), ClaimRequest{Providers: providers, Wait: time.Minute})
	}
	want := func(n int, claim func() ([]Job, error), what string) []Job {
		t.Helper()
		got, err := claim()
		must(t, err)
		equal(t, n, len(got), what)
		return got
	}
	other, first := wait("p2"), wait()
	s.order(1)
	job := want(1, first, "a run was created")
	for _, o := range []Outcome{Released, Throttled} {
		next := wait("p1")
		s.settle(o, job...)
		if o == Throttled {
			s.pass(time.Minute)
		}
		job = want(1, next, string(o))
	}
	s.d.Stop()
	want(0, other, "at the end")
	want(0, wait(), "after the end")
}

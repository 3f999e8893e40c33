package jobs

import (
	"strings"
	"testing"
	"time"
)

// TestRunOfJobs: a run's jobs are claimed once, in its order; it is completed with the last of them.
func TestRunOfJobs(t *testing.T) {
	s := newSite(t)
	run := s.orderOf(s.account(), "m1 m3 m2", 2, 2)
	all := append(s.claim(1, "p2"), s.claim(100)...) // a claim of the last model starts the run, too
	got := ""
	for _, j := range all {
		got += j.Provider + " " + place(j) + ", "
	}
	equal(t, "p2 m2 q1 1, p1 m1 q1 1, p1 m1 q1 2, p1 m1 q2 1, p1 m1 q2 2, p2 m2 q1 2, p2 m2 q2 1, p2 m2 q2 2, "+
		"p1 m3 q1 1, p1 m3 q1 2, p1 m3 q2 1, p1 m3 q2 2, ", got)
	equal(t, 0, len(s.claim(1)), "jobs were handed out twice")
	for _, part := range [][]Job{all[3:4], all[5:], all[:3], all[4:5]} {
		equal(t, "running", strings.Split(s.state(run), ":")[0])
		s.check()
		s.settle(Completed, part...)
	}
	equal(t, "completed: 0 of 12 jobs running, 12 completed, 0 failed, 0 canceled", s.state(run))
	equal(t, 0, s.rows("job_leases", "job_queue", "job_turns", "job_arrivals"), "rows of waiting jobs")
}

// TestGivenBackTogether: jobs of several models of one provider that are given back together ask the same when they are
// claimed again, and keep their tries and their start when other claims take a part of them.
func TestGivenBackTogether(t *testing.T) {
	t.Parallel()
	released := func(s *site, all []Job) { s.settle(Released, all...) }
	for name, test := range map[string]struct {
		giveBack         func(*site, []Job)
		completed, tries int // how many of 8 jobs are completed before
	}{
		"released":       {released, 0, 0},
		"throttled":      {func(s *site, all []Job) { s.settle(Throttled, all...) }, 0, 0},
		"retried":        {func(s *site, all []Job) { s.settle(Retry, all...) }, 0, 1},
		"some completed": {released, 1, 0},
		"expired":        {func(s *site, _ []Job) { s.pass(2 * time.Minute); s.sweep() }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.orderOf(s.account(), "m1 m3", 2, 2)
			first := s.claim(8)
			s.settle(Completed, first[:test.completed]...)
			test.giveBack(s, first[test.completed:])
			s.check()
			s.pass(time.Hour)
			again := append(s.claim(2), s.claim(8)...)
			equal(t, 8-test.completed, len(again), "jobs were claimed again")
			for _, j := range again {
				equal(t, place(first[j.Key.Ordinal-1]), place(j), "job ", j.Key.Ordinal)
			}
			equal(t, 8-test.completed, s.count(`
SELECT sum(l.last_ordinal - l.ordinal + 1) FROM job_leases l
JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id AND r.started_at = l.started_at
WHERE l.state = 'held' AND l.attempt = 2 AND l.tries = $1`, test.tries), "jobs are held since the start of the run")
		})
	}
}

// TestRetriedJobWaitsLonger: a retried job waits as long as its worker asked for, or 10 s doubled with each attempt up
// to 10 min, ±20 %.
func TestRetriedJobWaitsLonger(t *testing.T) {
	for n, want := range map[int16]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 49: 10 * time.Minute,
	} {
		for range 100 {
			if d := backoff(n, 0); d < want*8/10 || d > want*12/10 {
				t.Errorf("attempt %d: %v, want %v ±20 %%", n, d, want)
			}
		}
	}
	equal(t, time.Second, backoff(3, time.Second), "what was asked for")
}

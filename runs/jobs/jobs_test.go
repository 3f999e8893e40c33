package jobs_test

import (
	"testing"
	"time"

	"aiv/runs/jobs"
)

// TestRunOfJobs: a run's jobs are claimed in its order and settled; it is completed with the last of them.
func TestRunOfJobs(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	a := s.account(t)
	run := s.createRun(t, a, []string{"m1", "m2"}, 3, 2)

	all := claim(t, d, 100)
	var got []string
	for _, j := range all {
		got = append(got, j.Provider+" "+place(j))
	}
	equal(t, []string{"p1 m1 q1 1", "p1 m1 q1 2", "p1 m1 q2 1", "p1 m1 q2 2", "p1 m1 q3 1", "p1 m1 q3 2",
		"p2 m2 q1 1", "p2 m2 q1 2", "p2 m2 q2 1", "p2 m2 q2 2", "p2 m2 q3 1", "p2 m2 q3 2"}, got, "claimed")
	equal(t, runRow{Status: "running", Total: 12, Running: 12, Started: true}, s.run(t, run))
	equal(t, 0, len(claim(t, d, 1)), "jobs were handed out twice")
	s.check(t)
	settle(t, d, jobs.Completed, all[3])
	settle(t, d, jobs.Completed, all[5:]...)
	s.check(t)
	settle(t, d, jobs.Completed, all[:3]...)
	settle(t, d, jobs.Completed, all[4])
	s.check(t)
	equal(t, runRow{Status: "completed", Total: 12, Completed: 12, Started: true, Finished: true}, s.run(t, run))
	for _, table := range []string{"job_leases", "job_queue", "job_turns", "job_arrivals"} {
		equal(t, 0, s.count(t, `SELECT count(*) FROM `+table), table)
	}
}

// TestGivenBackTogether: jobs of several models of one provider that are given back together ask the same when they are
// claimed again.
func TestGivenBackTogether(t *testing.T) {
	t.Parallel()
	const questions, repetitions = 2, 2
	models := []string{"m1", "m3"}
	for name, giveBack := range map[string]func(*site, *jobs.Dispatcher, []jobs.Job){
		"released":  func(_ *site, d *jobs.Dispatcher, all []jobs.Job) { settle(t, d, jobs.Released, all...) },
		"throttled": func(_ *site, d *jobs.Dispatcher, all []jobs.Job) { settle(t, d, jobs.Throttled, all...) },
		"retried": func(_ *site, d *jobs.Dispatcher, all []jobs.Job) {
			var retries []jobs.Settlement
			for _, j := range all {
				r := settlement(j, jobs.Retry)
				r.After = time.Minute
				retries = append(retries, r)
			}
			settleAs(t, d, jobs.Reporter{}, retries...)
		},
		"some completed": func(_ *site, d *jobs.Dispatcher, all []jobs.Job) {
			settle(t, d, jobs.Completed, all[0], all[7])
			settle(t, d, jobs.Released, all[1:7]...)
		},
		"expired": func(s *site, d *jobs.Dispatcher, all []jobs.Job) {
			settle(t, d, jobs.Completed, all[0])
			s.pass(t, 2*time.Minute)
			sweep(t, d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := start(t)
			s.createRun(t, s.account(t), models, questions, repetitions)
			giveBack(s, d, claim(t, d, 8))
			s.check(t)
			s.pass(t, time.Hour)
			again := claim(t, d, 8)
			if len(again) < 6 {
				t.Errorf("%d jobs were claimed again, want at least 6", len(again))
			}
			for _, j := range again {
				if got, want := place(j), placeOf(models, questions, repetitions, j.Key.Ordinal); got != want {
					t.Errorf("job %d asks %s, want %s", j.Key.Ordinal, got, want)
				}
			}
		})
	}
}

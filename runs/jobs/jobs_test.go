package jobs_test

import (
	"testing"
	"time"

	"aiv/runs/jobs"

	"github.com/google/go-cmp/cmp"
)

// TestRunOfJobs: a run's jobs are claimed in its order and settled; it is completed with the last of them.
func TestRunOfJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	a := s.account(t)
	run := s.createRun(t, a, []string{"m1", "m2"}, 3, 2)

	all := claim(t, d, 100)
	var got []string
	for _, j := range all {
		got = append(got, j.Provider+" "+j.Parameters.ModelID+" "+j.Question.ID+" "+string(rune('0'+j.Repetition)))
	}
	want := []string{"p1 m1 q1 1", "p1 m1 q1 2", "p1 m1 q2 1", "p1 m1 q2 2", "p1 m1 q3 1", "p1 m1 q3 2",
		"p2 m2 q1 1", "p2 m2 q1 2", "p2 m2 q2 1", "p2 m2 q2 2", "p2 m2 q3 1", "p2 m2 q3 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("claimed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(runRow{Status: "running", Total: 12, Running: 12, Started: true}, s.run(t, run)); diff != "" {
		t.Error(diff)
	}
	if more := claim(t, d, 1); len(more) != 0 {
		t.Errorf("%d jobs were handed out twice", len(more))
	}
	s.check(t)
	settle(t, d, jobs.Completed, all[3])
	settle(t, d, jobs.Completed, all[5:]...)
	s.check(t)
	settle(t, d, jobs.Completed, all[:3]...)
	settle(t, d, jobs.Completed, all[4])
	s.check(t)
	if diff := cmp.Diff(runRow{Status: "completed", Total: 12, Completed: 12, Started: true, Finished: true}, s.run(t, run)); diff != "" {
		t.Error(diff)
	}
	if n := s.count(t, `SELECT (SELECT count(*) FROM job_leases) + (SELECT count(*) FROM job_queue) + (SELECT count(*) FROM job_turns) + (SELECT count(*) FROM job_arrivals)`); n != 0 {
		t.Errorf("%d rows are left", n)
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
		"retried":   func(_ *site, d *jobs.Dispatcher, all []jobs.Job) { settleRetries(t, d, all) },
		"some completed": func(_ *site, d *jobs.Dispatcher, all []jobs.Job) {
			settle(t, d, jobs.Completed, all[0], all[7])
			settle(t, d, jobs.Released, all[1:7]...)
		},
		"expired": func(s *site, d *jobs.Dispatcher, all []jobs.Job) {
			settle(t, d, jobs.Completed, all[0])
			s.pass(t, 2*time.Minute)
			if _, err := d.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			d := s.dispatcher(t)
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
			s.check(t)
		})
	}
}

// settleRetries gives jobs back in one request, all until the same time.
func settleRetries(t *testing.T, d *jobs.Dispatcher, all []jobs.Job) {
	t.Helper()
	var retries []jobs.Settlement
	for _, j := range all {
		r := settlement(j, jobs.Retry)
		r.After = time.Minute
		retries = append(retries, r)
	}
	must(t, ignore(d.Settle(t.Context(), jobs.Reporter{}, retries)))
}

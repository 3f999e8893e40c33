package jobs_test

import (
	"testing"

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
		got = append(got, j.Provider+" "+j.Order.ModelID+" "+j.Question.ID+" "+string(rune('0'+j.Repetition)))
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

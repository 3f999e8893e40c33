package runs_test

import (
	"fmt"
	"testing"

	"aiv/runs"
	"aiv/store/storetest"
)

// TestTheLargestRun creates a run with as many jobs as a methodology allows.
func TestTheLargestRun(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	r := s.process(t, "", always)
	first := create(t, r, s.request("key", 10, 500, 20))
	s.wantRuns(t, 1)
	equal(t, 100_000, s.count(t, `SELECT total_jobs FROM measurement_runs`), "jobs")
	replays(t, r, s.request("key", 10, 500, 20), first)
}

// TestSizesMixed writes runs of all sizes at once, through two processes: runs of one job, runs that fill a batch, and
// runs that are written alone.
func TestSizesMixed(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	processes := []*runs.Runs{s.process(t, "", always), s.process(t, "", always)}
	var all []*outcome
	for i, size := range []struct{ n, models, questions, repetitions int }{
		{60, 1, 1, 1}, {20, 3, 7, 2}, {2, 10, 50, 10}, {2, 10, 50, 11},
	} {
		for k := range size.n {
			q := s.request(fmt.Sprintf("%d-%d", i, k), size.models, size.questions, int64(size.repetitions))
			all = append(all, goCreate(t.Context(), processes[k%2], q))
		}
	}
	for _, o := range all {
		result, err := o.wait()
		must(t, err)
		equal(t, false, result.Replayed)
	}
	s.wantRuns(t, len(all))
}

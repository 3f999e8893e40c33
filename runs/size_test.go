package runs_test

import (
	"fmt"
	"sync"
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
	var jobs int
	must(t, s.pool.QueryRow(t.Context(), `SELECT total_jobs FROM measurement_runs WHERE id = $1`, first.RunID).Scan(&jobs))
	if jobs != 100_000 {
		t.Errorf("%d jobs are written", jobs)
	}
	replays(t, r, s.request("key", 10, 500, 20), first)
}

// TestSizesMixed writes runs of all sizes at once, through two processes, some of them twice: runs of one job, runs
// that fill a batch, and runs that are written alone.
func TestSizesMixed(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	processes := []*runs.Runs{s.process(t, "", always), s.process(t, "", always)}
	var requests []*runs.CreateRequest
	for i, size := range []struct{ n, models, questions, repetitions int }{
		{60, 1, 1, 1}, {20, 3, 7, 2}, {2, 10, 50, 10}, {2, 10, 50, 11},
	} {
		for k := range size.n {
			requests = append(requests, s.request(fmt.Sprintf("%d-%d", i, k), size.models, size.questions, int64(size.repetitions)))
		}
	}
	results := make([][2]*runs.CreateResult, len(requests))
	var wg sync.WaitGroup
	for i, o := range requests {
		for copy := range 2 {
			if copy == 1 && i%3 > 0 {
				continue
			}
			wg.Go(func() {
				var err error
				if results[i][copy], err = processes[(i+copy)%2].Create(t.Context(), o); err != nil {
					t.Errorf("%s: %v", o.Key, err)
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i, r := range results {
		switch {
		case r[1] == nil && r[0].Replayed:
			t.Errorf("%s is replayed and was never written", requests[i].Key)
		case r[1] != nil && (r[0].RunID != r[1].RunID || r[0].Replayed == r[1].Replayed):
			t.Errorf("%s: duplicates got %v and %v", requests[i].Key, r[0], r[1])
		}
	}
	s.wantRuns(t, len(requests))
}

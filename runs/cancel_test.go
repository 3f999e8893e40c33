package runs_test

import (
	"context"
	"fmt"
	"testing"

	"aiv/runs"
	"aiv/store"
)

// TestCancelEndsARun: the jobs of a canceled run that have not ended are canceled, and the run is reported as finished
// once.
func TestCancelEndsARun(t *testing.T) {
	s := newSite(t)
	var finished []string
	r := newRuns(runs.Config{Pool: s.open(t, ""), Finished: func(_ context.Context, _ store.Tx, f []runs.Run) error {
		for _, run := range f {
			finished = append(finished, fmt.Sprint(run.Status, " ", run.Running, run.Completed, run.Failed, run.Canceled))
		}
		return nil
	}})
	run := create(t, r, s.request("1", 1, 2, 3)).RunID
	s.exec(t, `UPDATE measurement_runs SET status = 'running', started_at = now(), jobs_returned = 2, jobs_completed = 1, jobs_failed = 1`)
	canceled, err := r.Cancel(t.Context(), s.credential.AccountID, run)
	must(t, err)
	again, err := r.Cancel(t.Context(), s.credential.AccountID, run)
	must(t, err)
	equal(t, canceled, again, "the run that is canceled again")
	equal(t, "canceled, ended: true", fmt.Sprintf("%s, ended: %t", canceled.Status, canceled.FinishedAt != nil), "the run")
	equal(t, []string{"canceled 0 1 1 4"}, finished, "runs reported as finished, with running, completed, failed and canceled jobs")
	s.verify(t)
}

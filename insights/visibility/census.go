package visibility

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A census counts the jobs of a selection by status.
type census struct {
	*selection
	answers Answers
}

// seen counts the jobs of a run that have facts, of those that the filter selects.
type seen struct{ completed, failed int64 }

// newCensus returns a census. Call add for each chosen cell of each chunk, then finish.
func newCensus(s *selection) *census { return &census{selection: s} }

// add counts the jobs of a cell that the filter selects.
func (c *census) add(from *chunk, sums *cell) {
	a := &c.answers
	// Only ok answers are recounted: the other statuses do not depend on the brands.
	switch ok := int64(sums.ok); {
	case c.isStale(from):
		a.Recounting += ok
	case c.isFrozen(from):
		a.OK, a.Frozen = a.OK+ok, a.Frozen+ok
	default:
		a.OK += ok
	}
	a.Empty += int64(sums.empty)
	a.Truncated += int64(sums.truncated)
	a.Failed += int64(sums.failed)
	// finish compares these with the counters of the run.
	s := &from.run.seen
	s.completed += int64(sums.ok + sums.empty + sums.truncated)
	s.failed += int64(sums.failed)
}

// finish counts the jobs that have no facts: those that have not ended, or were canceled, and those that ended before
// facts were kept.
func (c *census) finish(ctx context.Context) error {
	for _, r := range c.runs {
		s := &r.seen
		jobs, completed, failed := int64(r.total), int64(r.completed), int64(r.failed)
		// The counts of the run are of all its jobs. If the filter leaves only some cells, their counts come from the
		// cells and, for jobs without facts, from the results.
		if c.filter.ofJobs() {
			jobs = 0
			chosen := c.chosen(r)
			for _, yes := range chosen {
				if yes {
					jobs += int64(r.repetitions)
				}
			}
			completed, failed = s.completed, s.failed
			// Only jobs that an earlier version of the program settled have no facts.
			if r.counted < r.completed+r.failed {
				moreCompleted, moreFailed, err := c.uncounted(ctx, r, chosen)
				if err != nil {
					return err
				}
				completed, failed = completed+moreCompleted, failed+moreFailed
			}
		}
		// Completed jobs without facts wait to be counted for the first time.
		c.answers.Recounting += completed - s.completed
		c.answers.Failed += failed - s.failed
		// The cancellation of a run cancels all jobs that have not ended.
		if rest := jobs - completed - failed; r.status == "canceled" {
			c.answers.Canceled += rest
		} else {
			c.answers.Pending += rest
		}
	}
	return nil
}

// uncounted returns how many jobs of some cells of a run have ended and have no facts.
func (c *census) uncounted(ctx context.Context, r *run, chosen []bool) (completed, failed int64, err error) {
	counted, err := countedOrdinals(ctx, c.tx, c.account, r.id, 0, r.total)
	if err != nil {
		return 0, 0, err
	}
	rows, err := c.tx.Query(ctx, `
SELECT ordinal, error_code IS NOT NULL FROM job_results WHERE account_id = $1 AND run_id = $2 AND NOT canceled`, c.account, r.id)
	if err != nil {
		return 0, 0, err
	}
	var ordinal int32
	var isFailed bool
	_, err = pgx.ForEachRow(rows, []any{&ordinal, &isFailed}, func() error {
		switch {
		// The cell of an ordinal is (ordinal − 1) / repetitions.
		case counted[ordinal] || !chosen[(ordinal-1)/r.repetitions]:
		case isFailed:
			failed++
		default:
			completed++
		}
		return nil
	})
	return completed, failed, err
}

package jobs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// purgeAnswers deletes the answers of jobs that finished before a time, and returns how many. It reads the runs that
// started before that time and may still have answers, because an index of answers by age would have to be written with
// each job. After an error of one run, such as a lock that lasts, it goes on with the next run, and returns the first such
// error at the end.
func purgeAnswers(ctx context.Context, pool *pgxpool.Pool, before time.Time, deleted DeletedAnswers) (answers int64, err error) {
	var last answeredRun
	var failed error
	for {
		step, err := store.Collect(ctx, pool, pgx.RowToStructByPos[answeredRun], answeredRuns,
			before, last.Started, last.Account, last.ID, answeredRunsStep)
		if err != nil {
			return answers, err
		}
		for _, last = range step {
			n, err := purgeAnswersOf(ctx, pool, last, before, deleted)
			answers += n
			switch {
			// The error, such as a lost connection, would also concern the next run.
			case err != nil && !store.ConcernsOnePart(err):
				return answers, err
			case err != nil:
				failed = cmp.Or(failed, fmt.Errorf("%s: %w", last.ID.Text("run"), err))
			}
		}
		if len(step) < answeredRunsStep {
			return answers, failed
		}
	}
}

// An answeredRun is a run that has been started and may have answers.
type answeredRun struct {
	Started     time.Time
	Account, ID store.ID
	Jobs        int
}

// answeredRunsStep is the number of runs that one statement reads.
const answeredRunsStep = 500

// purgeAnswersOf deletes the old answers of a run, in one transaction for each purgeStep of its jobs. If the run itself
// finished before the time and has no answers left, the last transaction records that, so that it is not read again.
func purgeAnswersOf(ctx context.Context, pool *pgxpool.Pool, r answeredRun, before time.Time, deleted DeletedAnswers) (answers int64, err error) {
	for first := 1; first <= r.Jobs; first += purgeStep {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockRun, r.Account, r.ID); err != nil {
				return err
			}
			ordinals, err := store.Collect(ctx, tx, pgx.RowTo[int32], deleteAnswers, r.Account, r.ID, first, first+purgeStep-1, before)
			if err != nil {
				return err
			}
			if deleted != nil && len(ordinals) > 0 {
				if err := deleted(ctx, tx, r.Account, r.ID, ordinals); err != nil {
					return err
				}
			}
			answers += int64(len(ordinals))
			// This is the last step of the run.
			if first+purgeStep > r.Jobs {
				_, err = tx.Exec(ctx, noteAnswersDeleted, r.Account, r.ID, before)
			}
			return err
		})
		if err != nil {
			return answers, err
		}
	}
	return answers, nil
}

const (
	// answeredRuns returns runs in the order of an index on runs that may have answers, after the position $2 to $4.
	answeredRuns = `
SELECT started_at, account_id, id, total_jobs FROM measurement_runs
WHERE started_at < $1 AND NOT answers_deleted AND (started_at, account_id, id) > ($2::timestamptz, $3::uuid, $4::uuid)
ORDER BY started_at, account_id, id LIMIT $5::integer`

	// deleteAnswers keeps the rows: a job without its answer is still completed.
	deleteAnswers = `
UPDATE job_results SET answer = NULL
WHERE account_id = $1 AND run_id = $2 AND ordinal BETWEEN $3 AND $4 AND answer IS NOT NULL AND finished_at < $5
RETURNING ordinal`

	// lockRun keeps the run from being deleted until the end of the transaction, and waits for transactions that keep it
	// so, such as recounts: they would count answers that are deleted before they commit.
	lockRun = `SELECT FROM measurement_runs WHERE account_id = $1 AND id = $2 FOR UPDATE`

	// If a clock was ahead, a job may have a later end than its run.
	noteAnswersDeleted = `
UPDATE measurement_runs SET answers_deleted = true
WHERE account_id = $1 AND id = $2 AND finished_at < $3
  AND NOT EXISTS (SELECT FROM job_results WHERE account_id = $1 AND run_id = $2 AND answer IS NOT NULL)`
)

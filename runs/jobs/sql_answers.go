package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// purgeAnswers deletes the answers of jobs that finished before a time, and returns how many. It reads the runs that were started before
// and may still have answers: an index of answers by age would be written with each job.
func purgeAnswers(ctx context.Context, pool *pgxpool.Pool, before time.Time) (answers int64, err error) {
	var last answeredRun
	for {
		rows, err := pool.Query(ctx, answeredRuns, before, last.Started, last.Account, last.ID, answeredRunsStep)
		if err != nil {
			return answers, err
		}
		step, err := pgx.CollectRows(rows, pgx.RowToStructByPos[answeredRun])
		if err != nil {
			return answers, err
		}
		for _, last = range step {
			n, err := purgeAnswersOf(ctx, pool, &last, before)
			if answers += n; err != nil {
				return answers, err
			}
		}
		if len(step) < answeredRunsStep {
			return answers, nil
		}
	}
}

// An answeredRun is a run that has been started and may have answers.
type answeredRun struct {
	Started     time.Time
	Account, ID store.ID
	Jobs        int
}

const answeredRunsStep = 500

// purgeAnswersOf deletes the old answers of a run, in one statement for each purgeStep of its jobs. If the run itself finished before the
// time, it has no others, and is not read again.
func purgeAnswersOf(ctx context.Context, pool *pgxpool.Pool, r *answeredRun, before time.Time) (answers int64, err error) {
	for first := 1; first <= r.Jobs; first += purgeStep {
		done, err := pool.Exec(ctx, deleteAnswers, r.Account, r.ID, first, first+purgeStep-1, before)
		if err != nil {
			return answers, err
		}
		answers += done.RowsAffected()
	}
	_, err = pool.Exec(ctx, noteNoAnswers, r.Account, r.ID, before)
	return answers, err
}

const (
	answeredRuns = `
SELECT started_at, account_id, id, total_jobs FROM measurement_runs
WHERE started_at < $1 AND NOT answers_deleted AND (started_at, account_id, id) > ($2::timestamptz, $3::uuid, $4::uuid)
ORDER BY started_at, account_id, id LIMIT $5::integer`

	deleteAnswers = `
UPDATE job_results SET answer = NULL
WHERE account_id = $1 AND run_id = $2 AND ordinal BETWEEN $3 AND $4 AND answer IS NOT NULL AND finished_at < $5`

	noteNoAnswers = `UPDATE measurement_runs SET answers_deleted = true WHERE account_id = $1 AND id = $2 AND finished_at < $3`
)

package runs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// writeLarge writes large runs, of which each has a trip of its own. Their jobs are copied in after the rest,
// in the same transaction: PostgreSQL writes copied rows a page at a time, and an INSERT's one by one. The memory is for the
// rows that the trigger of the table looks over, which would go through a file otherwise.
func (r *Runs) writeLarge(ctx context.Context, runs []*writing, w waits) (claimed []bool, err error) {
	err = pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL work_mem = '32MB'"); err != nil {
			return err
		}
		if claimed, err = insert(ctx, tx, insertLargeRuns, runs, w); err != nil {
			return err
		}
		// What is copied is not to be copied again for a moment's lock.
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout TO DEFAULT"); err != nil {
			return err
		}
		for i, w := range runs {
			if !claimed[i] {
				continue
			}
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"measurement_jobs"},
				[]string{"account_id", "run_id", "model_no", "question_no", "repetition"}, w.jobs())
			if err != nil {
				return err
			}
		}
		return nil
	})
	return claimed, err
}

const insertLargeRuns = insertRunsOnly + usageOfRuns

// jobs are the rows of a run's jobs.
func (w *writing) jobs() pgx.CopyFromSource {
	model, question, repetition := int16(1), int16(1), int16(0)
	return pgx.CopyFromFunc(func() ([]any, error) {
		if repetition++; int(repetition) > w.run.Repetitions {
			repetition = 1
			if question++; int(question) > len(w.run.QuestionIDs) {
				question = 1
				if model++; int(model) > len(w.run.ModelIDs) {
					return nil, nil
				}
			}
		}
		return []any{w.run.AccountID, w.run.ID, model, question, repetition}, nil
	})
}

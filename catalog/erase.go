package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// eraseStep is how many questions are deleted in one transaction.
const eraseStep = 500

// EraseQuestions deletes an account's own questions with their tags, in small steps, and returns how many it deleted. No run
// may refer to them any more.
func (a *Admin) EraseQuestions(ctx context.Context, account store.ID) (total int64, err error) {
	for {
		var n int64
		err := store.Step(ctx, a.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockRevision); err != nil { // before the questions, as imports do
				return err
			}
			rows, err := tx.Query(ctx, questionsOfAccount, account, eraseStep)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if n = int64(len(ids)); err != nil || n == 0 {
				return err
			}
			if _, err := tx.Exec(ctx, deleteQuestionTags, account, ids); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, deleteQuestions, account, ids); err != nil {
				return err
			}
			return increaseRevision(ctx, tx)
		})
		if err != nil || n == 0 {
			return total, err
		}
		total += n
	}
}

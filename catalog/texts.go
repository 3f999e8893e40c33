package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// QuestionTexts returns the texts of questions that an account sees, in the order of their ids.
func QuestionTexts(ctx context.Context, db store.Querier, account store.ID, ids []string) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT id, text FROM questions WHERE id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	var id, text string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error { texts[id] = text; return nil }); err != nil {
		return nil, err
	}
	all := make([]string, len(ids))
	for i, id := range ids {
		text, found := texts[id]
		if !found {
			return nil, fmt.Errorf("there is no question %q", id)
		}
		all[i] = text
	}
	return all, nil
}

// QuestionsOf returns questions that an account sees, by their ids.
func QuestionsOf(ctx context.Context, db store.Querier, account store.ID, ids []string) (map[string]Question, error) {
	rows, err := db.Query(ctx, `SELECT id, text, topic, tags FROM questions WHERE id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Question)
	var q Question
	_, err = pgx.ForEachRow(rows, []any{&q.ID, &q.Text, &q.Topic, &q.Tags}, func() error { all[q.ID] = q; return nil })
	return all, err
}

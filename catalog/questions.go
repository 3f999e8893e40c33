package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A QuestionFilter selects questions. Empty members select all.
type QuestionFilter struct {
	Language string
	Country  string
	Topic    string
	Tag      string
	Status   string
}

// Questions returns a page of the shared questions and the account's own, ordered by id, and one more question if there
// is one. With several filters it uses the index of the first of tag, topic, language, country, status.
func Questions(ctx context.Context, db store.Querier, account store.ID, f QuestionFilter, page store.Page) ([]Question, error) {
	shared, own := f.query(selectShared, selectSharedTagged, page), f.query(selectOwn, selectOwnTagged, page)
	if f.Tag != "" {
		own.Where("t.account_id = ?", account)
	} else {
		own.Where("q.account_id = ?", account)
	}
	// Both queries return a page in the order of ids; the page of both is merged from them.
	return store.ReadMerged[Question](ctx, db, shared, own)
}

// query returns the query for a page of one table. all and tagged select from it without and with a filter by tag.
func (f *QuestionFilter) query(all, tagged string, page store.Page) *store.KeysetQuery {
	q := &store.KeysetQuery{Select: all, Order: []string{"q.id"}, Oldest: true, Page: page}
	if f.Tag != "" {
		// The rows of a tag are in the order of question ids, so the page is read through them.
		q.Select, q.First = tagged, true
		q.Order, q.Named = []string{"t.question_id"}, []string{"id"}
	}
	q.Filter("t.tag", f.Tag)
	q.Filter("q.topic", f.Topic)
	q.Filter("q.language", f.Language)
	q.Filter("q.country", f.Country)
	q.Filter("q.status", f.Status)
	return q
}

// GetQuestion returns a question that the account can use, or ErrQuestionNotFound.
func GetQuestion(ctx context.Context, db store.Querier, account store.ID, id string) (*Question, error) {
	found, err := QuestionsOf(ctx, db, account, []string{id})
	if err != nil {
		return nil, err
	}
	q, ok := found[id]
	if !ok {
		return nil, ErrQuestionNotFound
	}
	return &q, nil
}

// QuestionsOf returns questions as they are now, shared ones and the account's own, by id. It leaves out ids that the
// account cannot use.
func QuestionsOf(ctx context.Context, db store.Querier, account store.ID, ids []string) (map[string]Question, error) {
	rows, err := db.Query(ctx, selectByID, account, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Question, len(ids))
	questions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Question])
	for _, q := range questions {
		found[q.ID] = q
	}
	return found, err
}

// QuestionTexts returns the texts of questions in the order of ids. Texts never change. The text of an id that the
// account cannot use is empty.
func QuestionTexts(ctx context.Context, db store.Querier, account store.ID, ids []string) ([]string, error) {
	rows, err := db.Query(ctx, selectTexts, account, ids)
	if err != nil {
		return nil, err
	}
	// The statement returns each text once, in any order.
	byID := make(map[string]string, len(ids))
	var id, text string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		byID[id] = text
		return nil
	}); err != nil {
		return nil, err
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = byID[id]
	}
	return texts, nil
}

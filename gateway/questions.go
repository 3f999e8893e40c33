package gateway

import (
	"context"

	"aiv/catalog"
	"aiv/store"
)

// questionDocument is an item of GET /v1/catalog/questions.
type questionDocument struct {
	ID        string   `json:"id"`
	Text      string   `json:"text"`
	Language  string   `json:"language"`
	Country   string   `json:"country"`
	Topic     string   `json:"topic"`
	Tags      []string `json:"tags"`
	Status    string   `json:"status"`
	CreatedAt string   `json:"created_at"`
}

var questionList = list[catalog.QuestionFilter, catalog.Question]{
	filters: []filter[catalog.QuestionFilter]{
		formFilter("language", language, func(f *catalog.QuestionFilter) *string { return &f.Language }),
		formFilter("country", country, func(f *catalog.QuestionFilter) *string { return &f.Country }),
		textFilter("topic", func(f *catalog.QuestionFilter) *string { return &f.Topic }),
		textFilter("tag", func(f *catalog.QuestionFilter) *string { return &f.Tag }),
		wordFilter("status", catalog.QuestionStatuses, func(f *catalog.QuestionFilter) *string { return &f.Status }),
	},
	read: func(ctx context.Context, _ *Gateway, db store.Querier, x *exchange, f catalog.QuestionFilter, page store.Page) ([]catalog.Question, error) {
		return catalog.Questions(ctx, db, x.credential().AccountID, f, page)
	},
	sortKey: func(q *catalog.Question) store.Position { return store.Position{Text: q.ID} },
	byText:  true,
	wire: func(q *catalog.Question) any {
		return questionDocument{q.ID, q.Text, q.Language, q.Country, q.Topic, q.Tags, q.Status, store.FormatTime(q.CreatedAt)}
	},
	tagged: true,
}

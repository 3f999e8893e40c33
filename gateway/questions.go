package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"aiv/catalog"
	"aiv/gateway/wire"
	"aiv/store"
)

// questionDocument is the response of GET /v1/catalog/questions/{id} and an item of GET /v1/catalog/questions.
type questionDocument struct {
	ID        string   `json:"id"`
	Text      string   `json:"text"`
	Language  string   `json:"language"`
	Country   string   `json:"country"`
	Topic     string   `json:"topic"`
	Tags      []string `json:"tags"` // never null
	Status    string   `json:"status"`
	CreatedAt string   `json:"created_at"`
}

func newQuestionDocument(q *catalog.Question) questionDocument {
	return questionDocument{
		ID: q.ID, Text: q.Text, Language: q.Language, Country: q.Country, Topic: q.Topic, Tags: q.Tags, Status: q.Status,
		CreatedAt: store.FormatTime(q.CreatedAt),
	}
}

// questionList is the list of the shared questions and the account's own, by id. Like pages of models, its pages have
// an ETag.
var questionList = list[catalog.QuestionFilter, catalog.Question]{
	filters: []filter[catalog.QuestionFilter]{
		formFilter("language", language, func(f *catalog.QuestionFilter) *string { return &f.Language }),
		formFilter("country", country, func(f *catalog.QuestionFilter) *string { return &f.Country }),
		textFilter("topic", func(f *catalog.QuestionFilter) *string { return &f.Topic }),
		textFilter("tag", func(f *catalog.QuestionFilter) *string { return &f.Tag }),
		wordFilter("status", catalog.QuestionStatuses, func(f *catalog.QuestionFilter) *string { return &f.Status }),
	},
	read:    ofAccount(catalog.Questions),
	sortKey: func(q *catalog.Question) store.Position { return store.Position{Text: q.ID} },
	byText:  true,
	append:  encoded(newQuestionDocument),
	tagged:  true,
}

// readQuestion responds with a question that the account can use, shared or its own.
func (g *Gateway) readQuestion(x *exchange, r *http.Request) error {
	id, err := questionID(r)
	if err != nil {
		return err
	}
	q, err := readOne(g, x, func(ctx context.Context, db store.Querier) (*catalog.Question, error) {
		return catalog.GetQuestion(ctx, db, x.credential().AccountID, id)
	})
	if err != nil {
		return err
	}
	x.write(http.StatusOK, "application/json", wire.Encode(newQuestionDocument(q)))
	return nil
}

// createQuestion adds an own question. The id in Location is not escaped: the ids of new questions need no escapes.
func (g *Gateway) createQuestion(x *exchange, r *http.Request) error {
	body, err := readNewQuestion(x, r)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusCreated, func(ctx context.Context) (any, error) {
		q, err := g.cfg.Questions.Create(ctx, x.credential().AccountID, body)
		if err != nil {
			return nil, err
		}
		x.set("Location", Base+"?path="+questionPath+q.ID)
		return newQuestionDocument(q), nil
	})
}

// changeQuestion changes an own question. A shared one is not found.
func (g *Gateway) changeQuestion(x *exchange, r *http.Request) error {
	change, err := readQuestionChange(x, r)
	if err != nil {
		return err
	}
	id, err := questionID(r)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		return asDocument(newQuestionDocument)(g.cfg.Questions.Change(ctx, x.credential().AccountID, id, change))
	})
}

// questionID returns the id in the path. A malformed one is the id of no question.
func questionID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !catalog.IDPattern().MatchString(id) {
		return "", catalog.ErrQuestionNotFound
	}
	return id, nil
}

// questionPath precedes the id of a question, which is the rest of the path. Ids of imported questions may have slashes
// and dots.
const questionPath = "/v1/catalog/questions/"

// questionURL returns the URL of a question's path, in which the id is one segment, so that the mux neither splits nor
// cleans it. At a plain address clients may have escaped the id. ok is false for any other path.
func questionURL(path string) (u url.URL, ok bool) {
	rest, ok := strings.CutPrefix(path, questionPath)
	if !ok || rest == "" {
		return u, false
	}
	id, err := url.PathUnescape(rest)
	if err != nil {
		// A lone %, which no id contains: the question is not found.
		id = rest
	}
	return url.URL{Path: questionPath + id, RawPath: questionPath + strings.ReplaceAll(url.PathEscape(id), ".", "%2E")}, true
}

package catalog

import (
	"context"
	"slices"
	"strings"

	"aiv/store"
)

// The states of models and questions.
var (
	ModelStatuses    = []string{"active", "deprecated", "disabled"}
	QuestionStatuses = []string{"active", "archived"}
)

// A ModelFilter chooses among the models. What is empty chooses nothing.
type ModelFilter struct {
	Provider        string
	Status          string
	MeasurementType string
	GroundedSearch  *bool // whether it is available
}

// List returns a page of the models by id, and one model more if there is one.
func (s *Snapshot) List(f ModelFilter, page store.Page) []Model {
	from := 0
	if page.After != nil {
		var there bool
		from, there = slices.BinarySearchFunc(s.Models, page.After.Text, func(m Model, id string) int { return strings.Compare(m.ID, id) })
		if there {
			from++
		}
	}
	var found []Model
	for i := from; i < len(s.Models) && len(found) <= page.Limit; i++ {
		if m := &s.Models[i]; f.matches(m) {
			found = append(found, *m)
		}
	}
	return found
}

func (f *ModelFilter) matches(m *Model) bool {
	return (f.Provider == "" || f.Provider == m.Provider) && (f.Status == "" || f.Status == m.Status) &&
		(f.MeasurementType == "" || m.Measures(f.MeasurementType)) &&
		(f.GroundedSearch == nil || *f.GroundedSearch == m.GroundedSearchAvailable())
}

// A QuestionFilter chooses among the questions. What is empty chooses nothing.
type QuestionFilter struct {
	Language string
	Country  string
	Topic    string
	Tag      string
	Status   string
}

// everybody is the owner of the questions that belong to no account.
const everybody = "00000000-0000-0000-0000-000000000000"

const questionColumns = `
q.id, q.account_id, q.text, q.language, q.country, q.topic, q.tags, q.status, q.created_at`

const (
	selectQuestionPage = `SELECT ` + questionColumns + ` FROM questions q`

	// selectTaggedPage begins at the rows of one tag, which have the owner and the order as well.
	selectTaggedPage = `SELECT ` + questionColumns + ` FROM question_tags t JOIN questions q ON q.id = t.question_id`
)

// Questions returns a page of everybody's and the account's own questions by id, and one question more if there is one. Of
// several filters it reads through the index of the first in this order: tag, topic, language, country, status.
func (c *Catalog) Questions(ctx context.Context, account store.ID, f QuestionFilter, page store.Page) ([]Question, error) {
	s := store.KeysetQuery{Select: selectQuestionPage, Order: []string{"q.id"}, Oldest: true, Page: page}
	owner := "q.owner"
	if f.Tag != "" {
		s.Select, owner = selectTaggedPage, "t.owner"
		s.Order, s.Named = []string{"t.question_id"}, []string{"id"}
	}
	s.Through(owner, everybody, account.UUID())
	s.Filter("t.tag", f.Tag)
	s.Filter("q.topic", f.Topic)
	s.Filter("q.language", f.Language)
	s.Filter("q.country", f.Country)
	s.Filter("q.status", f.Status)
	return store.ReadPage[Question](ctx, c.pool, &s)
}

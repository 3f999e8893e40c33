package catalog

import (
	"context"
	"slices"
	"strings"

	"aiv/store"
)

// A ModelFilter selects models. Empty members select all.
type ModelFilter struct {
	Provider        string
	Status          string
	MeasurementType string
	GroundedSearch  *bool // whether grounded search is available
}

// List returns a page of the models, ordered by id, and one more model if there is one.
func (s *Snapshot) List(f ModelFilter, page store.Page) []Model {
	from := 0
	if page.After != nil {
		var exact bool
		from, exact = slices.BinarySearchFunc(s.Models, page.After.Text, func(m Model, id string) int { return strings.Compare(m.ID, id) })
		if exact {
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

// A QuestionFilter selects questions. Empty members select all.
type QuestionFilter struct {
	Language string
	Country  string
	Topic    string
	Tag      string
	Status   string
}

// Questions returns a page of the shared questions and the account's own, ordered by id, and one more question if there is
// one. With several filters it uses the index of the first of tag, topic, language, country, status.
func Questions(ctx context.Context, db store.Querier, account store.ID, f QuestionFilter, page store.Page) ([]Question, error) {
	s := store.KeysetQuery{Select: selectQuestionPage, Order: []string{"q.id"}, Oldest: true, Page: page}
	owner := "q.owner"
	if f.Tag != "" {
		s.Select, s.First, owner = selectTaggedPage, true, "t.owner"
		s.Order, s.Named = []string{"t.question_id"}, []string{"id"}
	}
	s.Through(owner, sharedOwner, account.UUID())
	s.Filter("t.tag", f.Tag)
	s.Filter("q.topic", f.Topic)
	s.Filter("q.language", f.Language)
	s.Filter("q.country", f.Country)
	s.Filter("q.status", f.Status)
	return store.ReadPage[Question](ctx, db, &s)
}

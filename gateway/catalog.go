package gateway

import (
	"context"
	"strconv"

	"aiv/catalog"
	"aiv/store"
)

// modelDocument is an item of GET /v1/catalog/models. Countries and languages are null if the model covers all.
type modelDocument struct {
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Provider         string         `json:"provider"`
	ProviderModel    string         `json:"provider_model"`
	Status           string         `json:"status"`
	MeasurementTypes []string       `json:"measurement_types"`
	Countries        []string       `json:"countries"`
	Languages        []string       `json:"languages"`
	GroundedSearch   groundedSearch `json:"grounded_search"`
}

// groundedSearch reports whether the model supports search, whether it may be used, and the unmet dependencies of its provider.
type groundedSearch struct {
	Supported bool     `json:"supported"`
	Available bool     `json:"available"`
	Unmet     []string `json:"unmet"`
}

// newModelDocument returns the wire form of a model.
func newModelDocument(m *catalog.Model) modelDocument {
	return modelDocument{
		ID: m.ID, Name: m.Name, Provider: m.Provider, ProviderModel: m.ProviderModel, Status: m.Status,
		MeasurementTypes: m.MeasurementTypes, Countries: m.Countries, Languages: m.Languages,
		GroundedSearch: groundedSearch{m.GroundedSearch, m.GroundedSearchAvailable(), m.Unmet},
	}
}

// An encodedModel is a model and its encoded document.
type encodedModel struct {
	catalog.Model
	document []byte
}

// encodedModels are the documents of one snapshot of the catalog, by the id of the model: all are encoded once per snapshot.
type encodedModels struct {
	snapshot  *catalog.Snapshot
	documents map[string][]byte
}

func (g *Gateway) encodeModels(s *catalog.Snapshot) map[string][]byte {
	if e := g.models.Load(); e != nil && e.snapshot == s {
		return e.documents
	}
	documents := make(map[string][]byte, len(s.Models))
	for i := range s.Models {
		documents[s.Models[i].ID] = encode(newModelDocument(&s.Models[i]))
	}
	g.models.Store(&encodedModels{s, documents})
	return documents
}

var modelList = list[catalog.ModelFilter, encodedModel]{
	inMemory: true,
	filters: []filter[catalog.ModelFilter]{
		textFilter("provider", func(f *catalog.ModelFilter) *string { return &f.Provider }),
		wordFilter("status", catalog.ModelStatuses, func(f *catalog.ModelFilter) *string { return &f.Status }),
		formFilter("measurement_type", measurementType, func(f *catalog.ModelFilter) *string { return &f.MeasurementType }),
		{"grounded_search", "true or false", func(f *catalog.ModelFilter, v string) bool {
			available, err := strconv.ParseBool(v)
			f.GroundedSearch = &available
			return err == nil && (v == "true" || v == "false")
		}},
	},
	read: func(ctx context.Context, g *Gateway, _ store.Querier, x *exchange, f catalog.ModelFilter, page store.Page) ([]encodedModel, error) {
		s, err := g.cfg.Catalog.At(ctx, x.admission.CatalogRevision)
		if err != nil {
			return nil, err
		}
		documents := g.encodeModels(s)
		found := s.List(f, page)
		models := make([]encodedModel, len(found))
		for i := range found {
			models[i] = encodedModel{found[i], documents[found[i].ID]}
		}
		return models, nil
	},
	sortKey:  func(m *encodedModel) store.Position { return store.Position{Text: m.ID} },
	byText:   true,
	wire:     func(m *encodedModel) any { return newModelDocument(&m.Model) },
	append:   func(b []byte, m *encodedModel) []byte { return append(b, m.document...) },
	revision: catalogRevision,
}

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
		return questionDocument{q.ID, q.Text, q.Language, q.Country, q.Topic, q.Tags, q.Status, wireTime(q.CreatedAt)}
	},
	revision: catalogRevision,
}

func catalogRevision(ctx context.Context, g *Gateway, x *exchange) (int64, error) {
	s, err := g.cfg.Catalog.At(ctx, x.admission.CatalogRevision)
	if err != nil {
		return 0, err
	}
	return s.Revision, nil
}

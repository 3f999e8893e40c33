package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Snapshot is the catalog of one revision. It is immutable except for a cache of the statuses of shared questions:
// there may be a million, but runs use the same few. The revision says nothing about own questions.
type Snapshot struct {
	Revision      int64
	Models        []Model // ordered by id
	Methodologies []Methodology

	models map[string]*Model // of Models, by id
	pool   *pgxpool.Pool     // for the statuses of questions

	mu     sync.RWMutex
	shared map[string]string // cached statuses by id
}

// maxQuestions bounds the cache (about 8 MiB). A full cache is emptied.
const maxQuestions = 100_000

// Model returns the model with this id, or nil.
func (s *Snapshot) Model(id string) *Model { return s.models[id] }

// Methodology returns the active methodology that covers the measurement type, or nil. Import ensures that
// there is at most one.
func (s *Snapshot) Methodology(measurementType string) *Methodology {
	for i := range s.Methodologies {
		if m := &s.Methodologies[i]; m.Status == Active && m.covers(measurementType) {
			return m
		}
	}
	return nil
}

func (m *Methodology) covers(measurementType string) bool {
	return slices.Contains(m.MeasurementTypes, measurementType)
}

// QuestionStatus returns the status of each question, or "" for an id that the account cannot use. It reads the
// statuses of own questions each time.
func (s *Snapshot) QuestionStatus(ctx context.Context, account store.ID, ids []string) ([]string, error) {
	// "" is no status, so it marks what is not cached.
	status := make([]string, len(ids))
	var missing []string
	s.mu.RLock()
	for i, id := range ids {
		if status[i] = s.shared[id]; status[i] == "" {
			missing = append(missing, id)
		}
	}
	s.mu.RUnlock()
	if missing == nil {
		return status, nil
	}
	found, err := s.lookUp(ctx, account, missing)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if status[i] == "" {
			status[i] = found[id]
		}
	}
	return status, nil
}

// lookUp reads the statuses of questions and caches the statuses of shared ones. Ids without a question are not cached:
// a client could send any number of them, and another account's question must take as long as one that does not exist.
func (s *Snapshot) lookUp(ctx context.Context, account store.ID, ids []string) (map[string]string, error) {
	rows, err := s.pool.Query(ctx, selectStatuses, account, ids)
	if err != nil {
		return nil, err
	}
	found, shared := make(map[string]string, len(ids)), make(map[string]string)
	var id, status string
	var isShared bool
	if _, err = pgx.ForEachRow(rows, []any{&id, &status, &isShared}, func() error {
		found[id] = status
		if isShared {
			shared[id] = status
		}
		return nil
	}); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil || len(s.shared)+len(shared) > maxQuestions {
		s.shared = make(map[string]string, len(shared))
	}
	// A shared question changes only with the revision, for which there is another snapshot.
	maps.Copy(s.shared, shared)
	return found, nil
}

// A ModelFilter selects models. Empty members select all.
type ModelFilter struct {
	Provider        string
	Status          string
	MeasurementType string
	GroundedSearch  *bool // whether grounded search is available
}

// List returns a page of the models, ordered by id, and one more model if there is one. It copies the models, so
// callers may change the slice.
func (s *Snapshot) List(f ModelFilter, page store.Page) []Model {
	from := 0
	if page.After != nil {
		var exact bool
		from, exact = slices.BinarySearchFunc(s.Models, page.After.Text, func(m Model, id string) int { return strings.Compare(m.ID, id) })
		// The model at the position was the last one of the page before. It may no longer exist.
		if exact {
			from++
		}
	}
	var found []Model
	// One more than the limit shows that others follow.
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

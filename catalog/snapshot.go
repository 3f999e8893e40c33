package catalog

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Snapshot is the catalog of one revision. It is immutable except for a cache of question statuses: there may be a
// million questions, but runs use the same few.
type Snapshot struct {
	Revision      int64
	Models        []Model // ordered by id
	Methodologies []Methodology

	models map[string]*Model
	pool   *pgxpool.Pool

	mu        sync.RWMutex
	questions map[questionKey]string // cached statuses
}

type questionKey struct {
	owner store.ID // zero: shared by all accounts
	id    string
}

// maxQuestions bounds the cache (about 10 MiB). A full cache is emptied.
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

// QuestionStatus returns the status of each question, or "" for an id that the account cannot use.
func (s *Snapshot) QuestionStatus(ctx context.Context, account store.ID, ids []string) ([]string, error) {
	status := make([]string, len(ids))
	var missing []string
	s.mu.RLock()
	for i, id := range ids {
		if status[i] = statusIn(s.questions, account, id); status[i] == "" {
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
			status[i] = statusIn(found, account, id)
		}
	}
	return status, nil
}

func statusIn(questions map[questionKey]string, account store.ID, id string) string {
	if status, ok := questions[questionKey{id: id}]; ok {
		return status
	}
	return questions[questionKey{account, id}]
}

// lookUp reads the statuses of questions and caches them. Ids without a question are not cached: a client could send any
// number of them, and another account's question must take as long as one that does not exist.
func (s *Snapshot) lookUp(ctx context.Context, account store.ID, ids []string) (map[questionKey]string, error) {
	rows, err := s.pool.Query(ctx, selectQuestionStates, ids, sharedOwner, account)
	if err != nil {
		return nil, err
	}
	found := make(map[questionKey]string, len(ids))
	var key questionKey
	var status string
	if _, err = pgx.ForEachRow(rows, []any{&key.owner, &key.id, &status}, func() error {
		found[key] = status
		return nil
	}); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions == nil || len(s.questions)+len(found) > maxQuestions {
		s.questions = make(map[questionKey]string, len(found))
	}
	maps.Copy(s.questions, found)
	return found, nil
}

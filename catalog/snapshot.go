package catalog

import (
	"context"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Snapshot is the catalog of one revision. It never changes, but for the states of questions that it has looked up:
// there may be a million questions, of which runs ask the same few.
type Snapshot struct {
	Revision      int64
	Models        []Model // by id
	Methodologies []Methodology

	models map[string]*Model
	pool   *pgxpool.Pool

	mu        sync.RWMutex
	questions map[questionKey]string // to their status
}

type questionKey struct {
	owner store.ID // zero: everybody
	id    string
}

// maxQuestions bounds the states that a snapshot remembers (about 10 MiB); beyond it, it starts anew.
const maxQuestions = 100_000

// Model returns a model by its id, or nil.
func (s *Snapshot) Model(id string) *Model { return s.models[id] }

// Methodology returns the active methodology that covers the measurement type, or nil. Import sees to it that there is
// at most one.
func (s *Snapshot) Methodology(measurementType string) *Methodology {
	for i := range s.Methodologies {
		if m := &s.Methodologies[i]; m.Status == "active" && m.covers(measurementType) {
			return m
		}
	}
	return nil
}

func (m *Methodology) covers(measurementType string) bool {
	for _, t := range m.MeasurementTypes {
		if t == measurementType {
			return true
		}
	}
	return false
}

// QuestionStatus tells of each id whether the account has such a question: "active", "archived" or "" if there is none
// that it may see.
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

// lookUp reads the states of questions and remembers them. What the account has not got is not remembered: a client may
// make up any number of ids, and another account's question must not be answered sooner than one that does not exist.
func (s *Snapshot) lookUp(ctx context.Context, account store.ID, ids []string) (map[questionKey]string, error) {
	rows, err := s.pool.Query(ctx, questionStates, ids, everybody, account)
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

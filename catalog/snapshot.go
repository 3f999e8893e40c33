package catalog

import (
	"context"
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
	questions map[string]questionState
}

// questionState is what a check wants to know of a question.
type questionState struct {
	owner  *store.ID // nil: everybody's
	active bool
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
	states := make([]questionState, len(ids))
	var missing []string
	known := make([]bool, len(ids))
	s.mu.RLock()
	for i, id := range ids {
		if states[i], known[i] = s.questions[id]; !known[i] {
			missing = append(missing, id)
		}
	}
	s.mu.RUnlock()
	if missing != nil {
		found, err := s.lookUp(ctx, missing)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			if !known[i] {
				states[i], known[i] = found[id]
			}
		}
	}
	status := make([]string, len(ids))
	for i, q := range states {
		switch {
		case !known[i] || q.owner != nil && *q.owner != account:
		case q.active:
			status[i] = "active"
		default:
			status[i] = "archived"
		}
	}
	return status, nil
}

// lookUp reads the states of questions and remembers them. Ids that stand for none are not remembered, as a client may
// make up any number of them.
func (s *Snapshot) lookUp(ctx context.Context, ids []string) (map[string]questionState, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, account_id, status = 'active' FROM questions WHERE id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]questionState, len(ids))
	var id string
	var q questionState
	_, err = pgx.ForEachRow(rows, []any{&id, &q.owner, &q.active}, func() error {
		found[id] = q
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions == nil || len(s.questions)+len(found) > maxQuestions {
		s.questions = make(map[string]questionState, len(found))
	}
	for id, q := range found {
		s.questions[id] = q
	}
	return found, nil
}

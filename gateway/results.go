package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"aiv/runs/results"
	"aiv/store"
)

// resultDocument is a job of a run, in the list GET /v1/runs/{id}/results.
type resultDocument struct {
	ID         string          `json:"id"`
	ModelID    string          `json:"model_id"`
	QuestionID string          `json:"question_id"`
	Repetition int             `json:"repetition"`
	Status     string          `json:"status"`
	Attempts   int             `json:"attempts"`
	Answer     json.RawMessage `json:"answer"` // as package gateway/worker encoded it
	Error      *resultError    `json:"error"`
	StartedAt  *string         `json:"started_at"`
	FinishedAt *string         `json:"finished_at"`
}

// resultError is why a job failed.
type resultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newResultDocument(r *results.Result) resultDocument {
	d := resultDocument{
		ID: r.Key.String(), ModelID: r.ModelID, QuestionID: r.QuestionID, Repetition: r.Repetition, Status: r.Status, Attempts: r.Attempts,
		StartedAt: store.FormatTimeOrNil(r.StartedAt), FinishedAt: store.FormatTimeOrNil(r.FinishedAt),
	}
	if r.Answer != nil {
		d.Answer = json.RawMessage(*r.Answer)
	}
	if r.ErrorCode != nil {
		d.Error = &resultError{Code: *r.ErrorCode, Message: *r.ErrorMessage}
	}
	return d
}

// resultList is the list of a run's jobs, in the order of their ordinals.
var resultList = list[results.Filter, results.Result]{
	filters: []filter[results.Filter]{
		wordsFilter("status", results.Statuses, func(f *results.Filter) *[]string { return &f.Statuses }),
		formFilter("model_id", catalogID, func(f *results.Filter) *string { return &f.ModelID }),
		formFilter("question_id", catalogID, func(f *results.Filter) *string { return &f.QuestionID }),
	},
	sortKey: func(r *results.Result) store.Position { return store.Position{Text: strconv.Itoa(int(r.Key.Ordinal))} },
	byText:  true,
	wire:    func(r *results.Result) any { return newResultDocument(r) },
}

// readResults responds with a page of a run's results.
func (g *Gateway) readResults(x *exchange, r *http.Request) error {
	var f results.Filter
	selected, err := resultList.parameters(g, x, &f)
	if err != nil {
		return err
	}
	run, err := runID(r)
	if err != nil {
		return err
	}
	after := 0
	if selected.After != nil {
		if after, err = strconv.Atoi(selected.After.Text); err != nil {
			return err
		}
	}
	return resultList.respond(g, x, r, func(ctx context.Context, db store.Querier) ([]results.Result, bool, error) {
		return results.List(ctx, db, x.credential().AccountID, run, f, int32(after), selected.Limit)
	})
}

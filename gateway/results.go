package gateway

import (
	"context"
	"net/http"
	"strconv"

	"aiv/gateway/wire"
	"aiv/runs/answers"
	"aiv/runs/results"
	"aiv/store"
	"aiv/store/strictjson"
)

// resultDocument is a job of a run, in the list GET /v1/runs/{id}/results. appendResult encodes it.
type resultDocument struct {
	ID         string          `json:"id"`
	ModelID    string          `json:"model_id"`
	QuestionID string          `json:"question_id"`
	Repetition int             `json:"repetition"`
	Status     string          `json:"status"`
	Attempts   int             `json:"attempts"`
	Answer     *answerDocument `json:"answer"`
	Error      *resultError    `json:"error"`
	StartedAt  *string         `json:"started_at"`
	FinishedAt *string         `json:"finished_at"`
}

// resultError is why a job failed.
type resultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// answerDocument is the answer of a completed job.
type answerDocument struct {
	Text          string             `json:"text"`
	Citations     []citationDocument `json:"citations"`
	SearchQueries []string           `json:"search_queries"`
	ModelVersion  *string            `json:"model_version"`
	AnsweredAt    string             `json:"answered_at"`
	Searched      *bool              `json:"searched"`
	Truncated     bool               `json:"truncated"`
	Usage         *answerUsage       `json:"usage"`
}

// answerUsage is what the provider charged for an answer.
type answerUsage struct {
	InputTokens  *int64 `json:"input_tokens"`
	OutputTokens *int64 `json:"output_tokens"`
	Searches     *int64 `json:"searches"`
}

// citationDocument is a source that an answer cites.
type citationDocument struct {
	Position int     `json:"position"`
	URL      string  `json:"url"`
	Domain   string  `json:"domain"`
	Title    *string `json:"title"`
}

// appendResult appends a job of a run as JSON: an item of GET /v1/runs/{id}/results. TestAppend compares it with
// encoding/json.
func appendResult(b []byte, r *results.Result) []byte {
	b = append(b, '{')
	b = wire.Text(b, "id", r.Key.String())
	b = wire.Text(b, "model_id", r.ModelID)
	b = wire.Text(b, "question_id", r.QuestionID)
	b = wire.Int(b, "repetition", r.Repetition)
	b = wire.Text(b, "status", r.Status)
	b = wire.Int(b, "attempts", r.Attempts)
	if b = wire.Member(b, "answer"); r.Answer != nil {
		b = appendAnswer(b, r.Answer)
	} else {
		b = append(b, "null"...)
	}
	if b = wire.Member(b, "error"); r.ErrorCode != nil {
		b = wire.Text(append(b, '{'), "code", *r.ErrorCode)
		b = append(wire.Text(b, "message", *r.ErrorMessage), '}')
	} else {
		b = append(b, "null"...)
	}
	b = wire.TimeOrNull(b, "started_at", r.StartedAt)
	b = wire.TimeOrNull(b, "finished_at", r.FinishedAt)
	return append(b, '}')
}

func appendAnswer(b []byte, a *answers.Answer) []byte {
	b = wire.Text(append(b, '{'), "text", a.Text)
	b = append(wire.Member(b, "citations"), '[')
	for i := range a.Citations {
		c := &a.Citations[i]
		b = wire.Int(append(wire.Item(b), '{'), "position", c.Position)
		b = wire.Text(b, "url", c.URL)
		b = wire.Text(b, "domain", c.Domain)
		b = append(wire.TextOrNull(b, "title", c.Title), '}')
	}
	b = append(wire.Member(append(b, ']'), "search_queries"), '[')
	for _, q := range a.SearchQueries {
		b = strictjson.AppendString(wire.Item(b), q)
	}
	b = wire.TextOrNull(append(b, ']'), "model_version", a.ModelVersion)
	b = wire.Time(b, "answered_at", a.AnsweredAt)
	if b = wire.Member(b, "searched"); a.Searched != nil {
		b = strconv.AppendBool(b, *a.Searched)
	} else {
		b = append(b, "null"...)
	}
	b = strconv.AppendBool(wire.Member(b, "truncated"), a.Truncated)
	if b = wire.Member(b, "usage"); a.Usage != nil {
		b = appendCount(append(b, '{'), "input_tokens", a.Usage.InputTokens)
		b = appendCount(b, "output_tokens", a.Usage.OutputTokens)
		b = append(appendCount(b, "searches", a.Usage.Searches), '}')
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

// appendCount appends a number, or null for nil.
func appendCount(b []byte, name string, n *int64) []byte {
	if b = wire.Member(b, name); n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, *n, 10)
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
	append:  appendResult,
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

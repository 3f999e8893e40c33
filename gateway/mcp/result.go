package mcp

import (
	"fmt"
	"strconv"
	"strings"

	"aiv/gateway/problem"
	"aiv/gateway/wire"
	"aiv/store/strictjson"
)

// MaxResult bounds the JSON that a tool returns, in bytes. Clients cut longer results without a mark.
const MaxResult = 40_000

// A Result is what a call of a tool returns: the body of its route, or a problem.
type Result struct {
	Body      []byte           // not used with a problem
	Problem   *problem.Problem // nil: the call has succeeded
	RequestID string
}

// Codes of problems that only tools have.
const (
	InvalidArguments = "invalid_arguments"
	ResultTooLarge   = "result_too_large"
)

// append appends the members of the result. Problems are results, because models see results and not errors of the
// protocol. structuredContent repeats the text for clients that read JSON.
func (r Result) append(b []byte) []byte {
	text := r.Body
	if r.Problem != nil {
		text = r.problem()
	}
	b = append(wire.Member(b, "content"), `[{"type":"text"`...)
	b = append(strictjson.AppendString(append(b, `,"text":`...), string(text)), "}]"...)
	if r.Problem != nil {
		return append(wire.Member(b, "isError"), "true"...)
	}
	return append(wire.Member(b, "structuredContent"), text...)
}

// maxProblem bounds the text of a problem, in bytes.
const maxProblem = 8_000

// A problemText is the text of a problem.
type problemText struct {
	Code       string  `json:"code"`
	Detail     string  `json:"detail"`
	Check      string  `json:"check,omitempty"` // the run check that rejected a run
	Errors     []fault `json:"errors,omitempty"`
	LeftOut    int     `json:"errors_left_out,omitempty"`
	RetryAfter *int    `json:"retry_after_seconds,omitempty"`
	RequestID  string  `json:"request_id"`
}

type fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problem returns the text of the problem. Its faults point into the arguments.
func (r Result) problem() []byte {
	p := r.Problem
	// A result has no headers.
	detail := strings.Replace(p.Detail, "the time in Retry-After", "retry_after_seconds", 1)
	d := problemText{Code: p.Code, Detail: detail, Check: p.Check, RequestID: r.RequestID}
	for _, f := range p.Errors {
		// The route names a query parameter, whose words are separated by commas, and the model an argument, which is an
		// array of words.
		if f.Parameter != nil {
			var named problem.Faults
			named.AddMember(At, *f.Parameter, strings.Replace(f.Detail, "a comma-separated list of", "a list of", 1))
			f = named[0]
		}
		d.Errors = append(d.Errors, fault{f.Pointer, f.Detail})
	}
	// The route reads the key from a header, so its problem has no pointer.
	if p.Code == problem.IdempotencyKeyInvalid {
		d.Errors = append(d.Errors, fault{At + "/idempotency_key", "must be 1 to 255 visible ASCII characters"})
	}
	if sent := p.Header["Retry-After"]; sent != nil {
		if seconds, err := strconv.Atoi(sent[0]); err == nil {
			d.RetryAfter = &seconds
		}
	}
	all := len(d.Errors)
	// At most 20 faults, and fewer if their text is too long; LeftOut says how many are missing.
	d.Errors = d.Errors[:min(all, 20)]
	for {
		d.LeftOut = all - len(d.Errors)
		text := wire.Encode(d)
		if len(text) < maxProblem || len(d.Errors) == 0 {
			return text
		}
		d.Errors = d.Errors[:len(d.Errors)-1]
	}
}

// WrongArguments reports the faults of arguments.
func WrongArguments(t *Tool, f problem.Faults) *problem.Problem {
	return &problem.Problem{Code: InvalidArguments, Detail: "The arguments are not valid for " + t.Name + ".", Errors: f}
}

// TooLarge reports a result that exceeds MaxResult: its size in bytes, its rows or items, and what to do about it.
func TooLarge(t *Tool, size, rows int) *problem.Problem {
	return &problem.Problem{Code: ResultTooLarge, Detail: fmt.Sprintf(
		"The result (%d bytes, rows: %d) is larger than the %d bytes that a tool returns. %s", size, rows, MaxResult, t.advice())}
}

// advice says how to get a smaller result, by the arguments that the tool has.
func (t *Tool) advice() string {
	var narrow []string
	for _, a := range []struct{ name, text string }{
		{"answer_chars", "a smaller answer_chars"}, {"metrics", "fewer metrics"}, {"brand_id", "a brand_id"},
		{"group_by", "fewer words in group_by"}, {"from", "a shorter period"},
	} {
		if t.Has(a.name) && (a.name != "brand_id" || t.Has("metrics")) {
			narrow = append(narrow, a.text)
		}
	}
	route := "the route " + t.Route
	// Only the tool of metrics has group_by, and only its route has a CSV form.
	if t.argument("group_by") != nil {
		route += " with Accept: text/csv"
	}
	if narrow == nil {
		return "Use " + route + "."
	}
	return "Use " + strings.Join(narrow, ", ") + ", or " + route + "."
}

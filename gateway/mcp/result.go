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

// TooLarge reports the result of a call that exceeds MaxResult: its size in bytes, its rows or items, and what to do about
// it. next is the cursor after an item that does not fit; "": no list, or the last item.
func TooLarge(t *Tool, a *Arguments, size, rows int, next string) *problem.Problem {
	detail := fmt.Sprintf("The result (%d bytes, rows: %d) is larger than the %d bytes that a tool returns. Use %s.",
		size, rows, MaxResult, t.advice(a))
	if next != "" {
		detail += " To continue after this item, set cursor to " + next + "."
	}
	// Without this sentence a model would report that nothing was canceled.
	if !strings.HasPrefix(t.Route, "GET ") {
		detail = "The call was carried out: do not repeat it. " + detail
	}
	return &problem.Problem{Code: ResultTooLarge, Detail: detail}
}

// advice says how to get a smaller result: by arguments that would make it smaller than those in a do, or by a route.
func (t *Tool) advice(a *Arguments) string {
	if !strings.HasPrefix(t.Route, "GET ") {
		return "the route GET /v1/runs/{id}" // of the run that the call was for
	}
	var ways []string
	chars, cells, groups := a.find("answer_chars"), a.find("metrics"), a.find("group_by")
	if t.Has("answer_chars") && (chars == nil || chars.Text != "0") {
		ways = append(ways, "a smaller answer_chars")
	}
	if t.Has("metrics") && (cells == nil || len(cells.Items) > 1) {
		ways = append(ways, "fewer metrics")
	}
	if t.Has("metrics") && a.find("brand_id") == nil {
		ways = append(ways, "a brand_id")
	}
	// Without groups there is a row for each brand, whatever the period.
	if groups != nil {
		ways = append(ways, "fewer words in group_by")
	}
	if groups != nil && a.find("run_id") == nil {
		ways = append(ways, "a shorter period")
	}
	route := "the route " + t.Route
	// Only the tool of metrics has group_by, and only its route has a CSV form.
	if t.Has("group_by") {
		route += " with Accept: text/csv"
	}
	if ways == nil {
		return route
	}
	return strings.Join(ways, ", ") + ", or " + route
}

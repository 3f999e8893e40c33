package reference

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"sync"
)

// An Example is an exchange of a golden file, with values in the place of the names that the file has for what a server
// makes.
type Example struct {
	File     string          `json:"file"`
	Method   string          `json:"method,omitempty"`
	Address  string          `json:"address,omitempty"` // the logical route with its parameters: /v1/runs?limit=2
	Key      string          `json:"idempotency_key,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"` // of the logical route
	Status   int             `json:"status"`
	Headers  []string        `json:"headers,omitempty"`
	Response json.RawMessage `json:"response"`
}

// Examples are what the golden files show of each route: its success, and the problems told in its own folder; and of each
// problem, the first that is told anywhere. Of problems only the responses are kept.
type Examples struct {
	Routes   map[string]RouteExamples `json:"routes"`
	Problems map[string]Example       `json:"problems"`
}

// RouteExamples are those of one route.
type RouteExamples struct {
	Success  Example            `json:"success"`
	Problems map[string]Example `json:"problems,omitempty"`
}

// examplesJSON is written by go test ./gateway -run Golden -update, and compared with the golden files without -update.
//
//go:embed examples.json
var examplesJSON []byte

// LoadExamples reads the examples.
var LoadExamples = sync.OnceValue(func() Examples {
	var e Examples
	if err := json.Unmarshal(examplesJSON, &e); err != nil {
		panic(err) // it is built in, and a test has read it
	}
	return e
})

// AtPlainAddress is the response at a plain address to what a golden file sent in an envelope: pointers lead into the bare
// body.
func (e *Example) AtPlainAddress() json.RawMessage {
	return bytes.ReplaceAll(e.Response, []byte("#/body/"), []byte("#/"))
}

// problemOf is the example of a problem for a route: its own if it has one.
func (e *Examples) problemOf(route, code string) Example {
	if own, ok := e.Routes[route].Problems[code]; ok {
		return own
	}
	return e.Problems[code]
}

// CheckProblems are the problems that only run checks tell: what the golden files show beyond the given codes. A new check
// stands in the reference as soon as its golden file does.
func CheckProblems(known func(code string) bool) (problems []Problem) {
	e := LoadExamples()
	for code, example := range e.Problems {
		if !known(code) {
			var p struct{ Title, Check string }
			if err := json.Unmarshal(example.Response, &p); err != nil {
				panic(err)
			}
			problems = append(problems, Problem{Code: code, Status: example.Status, Title: p.Title, Check: p.Check})
		}
	}
	return problems
}

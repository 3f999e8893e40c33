package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
)

// exampleFiles are the golden files of the examples of routes, where it is not the ok.txt of the route's folder.
var exampleFiles = map[string]string{"runs.list": "three_pages.txt"}

// An exampleObject is an Example Object of OpenAPI with the exchange that it was taken from.
type exampleObject struct {
	File    string          `json:"x-file"`
	Method  string          `json:"x-method,omitempty"`
	Address string          `json:"x-address,omitempty"` // path and parameters of the route
	Key     string          `json:"x-idempotency-key,omitempty"`
	Status  int             `json:"x-status,omitempty"`
	Headers []string        `json:"x-headers,omitempty"`
	Value   json.RawMessage `json:"value"`
}

// TestGoldenExamples compares components/examples, the last section of openapi.json, with the golden files: the first
// success of each operation and the first problem of each code. -update writes the section.
func TestGoldenExamples(t *testing.T) {
	d := openAPI(t)
	exchanges := goldenExchanges(t)
	var section bytes.Buffer
	add := func(name string, e exampleObject) {
		if section.Len() > 0 {
			section.WriteString(",\n")
		}
		text, err := json.Marshal(name)
		must(t, err)
		section.WriteString("      " + string(text) + ": " + encodeExample(t, e))
	}
	for _, o := range d.routes() {
		e, body, ok := successOf(exchanges, o)
		if !ok {
			t.Errorf("no golden file shows a success of %s", o.name)
			continue
		}
		add(o.id(), e)
		if o.spec["requestBody"] != nil {
			add(o.id()+"_request", exampleObject{File: e.File, Value: body})
		}
	}
	shown := make(map[string]exampleObject)
	for _, g := range exchanges {
		for _, a := range g.answers {
			if code := a.code(); code != "" && shown[code].File == "" && json.Valid(a.body) {
				shown[code] = exampleObject{File: g.file, Status: a.status, Value: a.body}
			}
		}
	}
	for _, c := range d.codes() {
		if e, ok := shown[c.code]; ok { // TestProblemCodes reports missing ones
			add(c.code, e)
		}
	}
	got := readOpenAPI(t)
	const start = "\n    \"examples\": {"
	head, _, ok := strings.Cut(string(got), start)
	if !ok {
		t.Fatal("components/examples is not the last section of openapi.json")
	}
	want := head + start + "\n" + section.String() + "\n    }\n  }\n}\n"
	if *update {
		must(t, os.WriteFile(openAPIFile, []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("components/examples differs from the golden files; run go test ./gateway -run Golden -update (-golden +openapi.json):\n%s", diff)
	}
}

func encodeExample(t *testing.T, e exampleObject) string {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("      ", "  ")
	must(t, encoder.Encode(e))
	return strings.TrimSuffix(b.String(), "\n")
}

// successOf returns the first success of an operation in its golden file, and the body of the request.
func successOf(exchanges []filled, o operation) (e exampleObject, body json.RawMessage, ok bool) {
	routes := gateway.Routes()
	i := slices.IndexFunc(routes, func(r gateway.Route) bool { return r.Name == o.name })
	if i < 0 {
		return e, nil, false // TestOpenAPIRoutes reports it
	}
	folder := routes[i].Golden
	file := exampleFiles[folder]
	if file == "" {
		file = "ok.txt"
	}
	for _, g := range exchanges {
		c := g.routeCall()
		if g.file != folder+"/"+file || c == nil || g.answers[0].status >= 300 || c.method != o.method || !matches(o.path, c.path) {
			continue
		}
		a := g.answers[0]
		e = exampleObject{File: g.file, Method: c.method, Address: c.path, Key: g.request.Header.Get("Idempotency-Key"), Status: a.status}
		if c.query != nil {
			e.Address += "?" + strings.Join(c.query, "&")
		}
		for _, h := range a.headers {
			e.Headers = append(e.Headers, h[0]+": "+h[1])
		}
		if len(a.body) > 0 {
			e.Value = a.body
		}
		return e, c.body, true
	}
	return e, nil, false
}

// A call is a request of a route, without the form in which it was sent.
type call struct {
	method, path string
	query        []string // name=value
	body         []byte
}

// routeCall returns the call that an exchange makes, or nil if its address or envelope is invalid.
func (g *filled) routeCall() *call {
	method := g.request.Method
	if method == "HEAD" {
		method = "GET"
	}
	rest, ok := strings.CutPrefix(g.request.URL.EscapedPath(), gateway.Base)
	query := g.queryPairs()
	switch {
	case !ok:
		return nil
	case rest != "":
		return &call{method, rest, query, g.body}
	case method == "POST":
		var envelope struct {
			Path, Method string
			Body         json.RawMessage
		}
		if json.Unmarshal(g.body, &envelope) != nil || envelope.Method == "GET" || envelope.Method == "HEAD" || envelope.Body == nil {
			return nil
		}
		return &call{envelope.Method, envelope.Path, query, envelope.Body}
	case method == "GET":
		c := &call{method: method}
		for _, pair := range query {
			if name, v, _ := strings.Cut(pair, "="); name != "path" {
				c.query = append(c.query, pair)
			} else if path, err := url.QueryUnescape(v); err == nil {
				path, inner, found := strings.Cut(path, "?")
				if c.path = path; found {
					c.query = append(c.query, strings.Split(inner, "&")...)
				}
			}
		}
		return c
	}
	return nil
}

func (g *filled) queryPairs() []string {
	if g.request.URL.RawQuery == "" {
		return nil
	}
	return strings.Split(g.request.URL.RawQuery, "&")
}

// matches reports whether a path is one of a template such as /v1/runs/{id}.
func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && !(strings.HasPrefix(want[i], "{") && got[i] != "") {
			return false
		}
	}
	return true
}

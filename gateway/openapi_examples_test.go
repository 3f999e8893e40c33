package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/gateway/reference"
)

// exampleFiles are the golden files of the examples of routes, where it is not the ok.txt of the route's folder.
var exampleFiles = map[string]string{"runs.list": "three_pages.txt"}

// TestGoldenExamples compares examples.json with the golden files: it has the first success of each operation and the
// first problem of each code. -update writes the file.
func TestGoldenExamples(t *testing.T) {
	d := openAPI(t)
	exchanges := goldenExchanges(t)
	var b bytes.Buffer
	add := func(name string, e reference.Example) {
		text, err := json.Marshal(name)
		must(t, err)
		if b.Len() > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "  %s: %s", text, encodeExample(t, e))
	}
	for _, o := range d.routes() {
		e, ok := successOf(exchanges, o)
		if !ok {
			t.Errorf("no golden file shows a success of %s", o.name)
			continue
		}
		add(o.id(), e)
	}
	shown := make(map[string]reference.Example)
	for _, g := range exchanges {
		for _, a := range g.answers {
			if code := a.code(); code != "" && shown[code].File == "" && json.Valid(a.body) {
				shown[code] = reference.Example{File: g.file, Status: a.status, Response: a.body}
			}
		}
	}
	for _, c := range d.codes() {
		if e, ok := shown[c.code]; ok { // TestProblemCodes reports missing ones
			add(c.code, e)
		}
	}
	want := "{\n" + b.String() + "\n}\n"
	if *update {
		must(t, os.WriteFile(examplesFile, []byte(want), 0o644))
		return
	}
	got := string(readReference(t, examplesFile, reference.Examples))
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs from the golden files; run go test ./gateway -run Golden -update (-golden +file):\n%s",
			examplesFile, diff)
	}
}

func encodeExample(t *testing.T, e reference.Example) string {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("  ", "  ")
	must(t, encoder.Encode(e))
	return strings.TrimSuffix(b.String(), "\n")
}

// successOf returns the first success of an operation in its golden file.
func successOf(exchanges []filled, o operation) (e reference.Example, ok bool) {
	routes := gateway.Routes()
	i := slices.IndexFunc(routes, func(r gateway.Route) bool { return r.Name == o.name })
	if i < 0 {
		return e, false // TestOpenAPIRoutes reports it
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
		e = reference.Example{File: g.file, Method: c.method, Address: c.path, Key: g.request.Header.Get("Idempotency-Key"), Status: a.status}
		if len(c.query) > 0 {
			e.Address += "?" + strings.Join(c.query, "&")
		}
		for _, h := range a.headers {
			e.Headers = append(e.Headers, h[0]+": "+h[1])
		}
		if len(a.body) > 0 {
			e.Response = a.body
		}
		if o.spec["requestBody"] != nil {
			e.Request = c.body
		}
		return e, true
	}
	return e, false
}

// A call is a request of a route, without the form in which it was sent.
type call struct {
	method, path string
	query        []string // name=value
	body         []byte
}

// routeCall returns the call that an exchange makes, or nil if its address or envelope is invalid.
func (g *filled) routeCall() *call {
	c := &call{method: strings.Replace(g.request.Method, "HEAD", "GET", 1), query: g.queryPairs(), body: g.body}
	path, ok := strings.CutPrefix(g.request.URL.EscapedPath(), gateway.Base)
	if !ok || path == "" && c.method != "GET" && c.method != "POST" {
		return nil
	}
	if path != "" {
		c.path = path
		return c
	}
	if c.method == "POST" {
		var envelope struct {
			Path, Method string
			Body         json.RawMessage
		}
		if json.Unmarshal(g.body, &envelope) != nil || envelope.Method == "GET" || envelope.Method == "HEAD" || envelope.Body == nil {
			return nil
		}
		c.method, path, c.body = envelope.Method, envelope.Path, envelope.Body
	} else {
		c.query = slices.DeleteFunc(c.query, func(pair string) bool {
			name, value, _ := strings.Cut(pair, "=")
			if name == "path" {
				path, _ = url.QueryUnescape(value)
			}
			return name == "path"
		})
	}
	path, inner, found := strings.Cut(path, "?")
	if c.path = path; found {
		c.query = append(c.query, strings.Split(inner, "&")...)
	}
	return c
}

// segments splits a path. The id of a question is one segment: the rest of the path, which may be escaped.
func segments(path string) []string {
	const before = "/v1/catalog/questions/"
	rest, ok := strings.CutPrefix(path, before)
	if !ok {
		return strings.Split(path, "/")
	}
	if id, err := url.PathUnescape(rest); err == nil {
		rest = id
	}
	return append(strings.Split(strings.TrimSuffix(before, "/"), "/"), rest)
}

func (g *filled) queryPairs() []string {
	if g.request.URL.RawQuery == "" {
		return nil
	}
	return strings.Split(g.request.URL.RawQuery, "&")
}

// matches reports whether a path is one of a template such as /v1/runs/{id}.
func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), segments(path)
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

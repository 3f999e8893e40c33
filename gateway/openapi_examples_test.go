package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/reference"
)

// TestGoldenExamples compares examples.json with the golden files: it has the first success of each operation and the
// first problem of each code. -update writes the file.
func TestGoldenExamples(t *testing.T) {
	d := openAPI(t)
	files := make(map[string]string) // of the examples of routes
	for i := range routes {
		files[routes[i].name()] = routes[i].golden + "/ok.txt"
	}
	files["GET /v1/runs"] = "runs.list/three_pages.txt"
	successes, problems := make(map[string]*reference.Example), make(map[string]*reference.Example)
	for _, g := range goldenExchanges(t) {
		for _, a := range g.answers {
			if code := a.code(); code != "" && problems[code] == nil && json.Valid(a.body) {
				problems[code] = &reference.Example{File: g.file, Status: a.status, Response: a.body}
			}
		}
		if found := d.operationsOf(&g); len(found) > 0 && g.answers[0].status < 300 {
			if o := found[len(found)-1]; g.file == files[o.name] && successes[o.id()] == nil {
				successes[o.id()] = exampleOf(&g, o)
			}
		}
	}
	var entries []string
	add := func(name string, e *reference.Example) {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("  ", "  ")
		must(t, encoder.Encode(e))
		entries = append(entries, fmt.Sprintf("  %q: %s", name, strings.TrimSuffix(b.String(), "\n")))
	}
	for _, o := range d.routes() {
		if e := successes[o.id()]; e != nil {
			add(o.id(), e)
		} else {
			t.Errorf("no golden file shows a success of %s", o.name)
		}
	}
	for _, c := range d.codes() {
		if e := problems[c.code]; e != nil { // TestProblemCodes reports missing ones
			add(c.code, e)
		}
	}
	want := "{\n" + strings.Join(entries, ",\n") + "\n}\n"
	if *update {
		must(t, os.WriteFile("reference/examples.json", []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(reference.Examples), "\n")); diff != "" {
		t.Errorf("reference/examples.json differs from the golden files; run go test ./gateway -run Golden -update (-golden +file):\n%s", diff)
	}
}

// exampleOf returns an exchange as an example of its operation.
func exampleOf(g *filledExchange, o operation) *reference.Example {
	a := g.answers[0]
	e := &reference.Example{File: g.file, Method: o.method, Key: g.request.Header.Get("Idempotency-Key"), Status: a.status}
	_, e.Address, _ = g.routeCall()
	for _, h := range a.headers {
		e.Headers = append(e.Headers, h[0]+": "+h[1])
	}
	if len(a.body) > 0 {
		e.Response = a.body
	}
	if o.spec["requestBody"] != nil {
		e.Request = o.body
	}
	return e
}

// routeCall returns the call of a route that an exchange makes, without the form in which it was sent. The address is
// empty if that or the envelope is invalid.
func (g *filledExchange) routeCall() (method, address string, body []byte) {
	method = strings.Replace(g.request.Method, "HEAD", "GET", 1)
	path, ok := strings.CutPrefix(g.request.URL.EscapedPath(), Base)
	query := g.request.URL.RawQuery
	switch {
	case !ok || path != "" && path[0] != '/':
		return method, "", nil
	case path != "":
		return method, strings.TrimSuffix(path+"?"+query, "?"), g.body
	case method == "POST":
		var envelope struct {
			Path, Method string
			Body         json.RawMessage
		}
		if json.Unmarshal(g.body, &envelope) != nil || envelope.Method == "GET" || envelope.Body == nil {
			return method, "", nil
		}
		return envelope.Method, envelope.Path, envelope.Body
	}
	path = g.request.URL.Query().Get("path")
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name != "path" {
			path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + pair
		}
	}
	return method, path, nil
}

// matches reports whether a path is one of a template such as /v1/runs/{id}. The id of a question is the rest of the path.
func matches(template, path string) bool {
	if template == questionPath+"{id}" {
		return strings.HasPrefix(path, questionPath) && path != questionPath
	}
	return slices.EqualFunc(strings.Split(template, "/"), strings.Split(path, "/"), func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{") && got != "" && got != "." && got != ".."
	})
}

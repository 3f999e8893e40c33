package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/gateway/reference"
)

// exampleFiles tell a route's success in the reference, where it is not the ok.txt of the route's folder.
var exampleFiles = map[string]string{"runs.list": "three_pages.txt"}

// TestGoldenExamples holds the examples of the reference to the golden files; -update writes them.
func TestGoldenExamples(t *testing.T) {
	want := reference.Examples{Routes: make(map[string]reference.RouteExamples), Problems: make(map[string]reference.Example)}
	exchanges := goldenExchanges(t)
	for name, folder := range gateway.RouteFolders() {
		want.Routes[name] = reference.RouteExamples{Problems: make(map[string]reference.Example)}
		success := exampleFiles[folder]
		if success == "" {
			success = "ok.txt"
		}
		for _, g := range exchanges {
			e := exampleOf(g)
			path, _, _ := strings.Cut(e.Address, "?")
			if e.Status >= 300 && strings.HasPrefix(g.file, folder+"/") {
				if code := g.answers[0].code(); code != "" && want.Routes[name].Problems[code].File == "" {
					want.Routes[name].Problems[code] = responseOf(g, g.answers[0])
				}
			}
			if r := want.Routes[name]; g.file == folder+"/"+success && e.Status < 300 && r.Success.File == "" && isOf(name, e.Method+" "+path) {
				r.Success = e
				want.Routes[name] = r
			}
		}
		if want.Routes[name].Success.File == "" {
			t.Errorf("%s/%s shows no success of %s", folder, success, name)
		}
	}
	for _, g := range exchanges {
		for _, a := range g.answers {
			if code := a.code(); code != "" && want.Problems[code].File == "" {
				want.Problems[code] = responseOf(g, a)
			}
		}
	}
	if *update {
		must(t, os.WriteFile("reference/examples.json", []byte(encodeExamples(t, want)), 0o644))
		return
	}
	if diff := cmp.Diff(strings.Split(encodeExamples(t, want), "\n"), strings.Split(encodeExamples(t, reference.LoadExamples()), "\n")); diff != "" {
		t.Errorf("the reference's examples are not what the golden files show; -update writes them (-golden +reference):\n%s", diff)
	}
}

func encodeExamples(t *testing.T, examples reference.Examples) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	must(t, e.Encode(examples))
	return b.String()
}

// isOf says whether a method and a path are those of a route.
func isOf(route, request string) bool {
	before, after, ok := strings.Cut(route, "{id}")
	id, isBefore := strings.CutPrefix(request, before)
	return request == route || ok && isBefore && after == "" && id != "" && !strings.Contains(id, "/")
}

// exampleOf is the exchange as a request of a logical route, whatever its form. What is a route's in neither form has no
// address.
func exampleOf(g filled) reference.Example {
	a := g.answers[0]
	e := responseOf(g, a)
	e.Method, e.Key = g.request.Method, g.request.Header.Get("Idempotency-Key")
	for _, h := range a.headers {
		e.Headers = append(e.Headers, h[0]+": "+h[1])
	}
	if len(g.body) < 4096 && json.Valid(g.body) {
		e.Body = g.body
	}
	var envelope struct {
		Path, Method string
		Body         json.RawMessage
	}
	switch rest := strings.TrimPrefix(g.request.URL.Path, gateway.Base); {
	case rest != "":
		e.Address = strings.TrimPrefix(g.request.URL.RequestURI(), gateway.Base)
	case g.request.Method == "POST":
		if json.Unmarshal(g.body, &envelope) == nil && e.Body != nil {
			e.Address, e.Method, e.Body = envelope.Path, envelope.Method, envelope.Body
		}
	default:
		var others []string
		for pair := range strings.SplitSeq(g.request.URL.RawQuery, "&") {
			if name, v, _ := strings.Cut(pair, "="); name != "path" {
				others = append(others, pair)
			} else if path, err := url.QueryUnescape(v); err == nil {
				e.Address = path
			}
		}
		if others != nil {
			e.Address += "?" + strings.Join(others, "&")
		}
	}
	return e
}

func responseOf(g filled, a answer) reference.Example {
	e := reference.Example{File: g.file, Status: a.status}
	if json.Valid(a.body) {
		e.Response = a.body
	}
	return e
}

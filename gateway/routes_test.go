package gateway

import (
	"encoding/json"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/problem"
	"aiv/insights/events"
)

// TestEveryEventTypeHasAScope: events of a type that the gateway does not know would be hidden, and a subscription to
// all types be refused.
func TestEveryEventTypeHasAScope(t *testing.T) {
	for _, name := range events.Types() {
		if !KnowsEvent(name) {
			t.Errorf("eventTypes lacks %s; add the capability of the package that causes it", name)
		}
	}
}

// TestReadmeRoutes checks that the program has each route in the table of README.md, with these scopes. openapi.json,
// not the README, lists all routes.
func TestReadmeRoutes(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	_, table, _ := strings.Cut(string(readme), "\n| route | scope |\n|---|---|\n")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("README.md has no table of routes and scopes")
	}
	routes := Routes()
	code := regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		scopes := []string{}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			scopes = append(scopes, m[1])
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			i := slices.IndexFunc(routes, func(r Route) bool { return r.Name == m[1] })
			if i < 0 || !slices.Equal(routes[i].Scopes, scopes) {
				t.Errorf("README.md lists %s with the scopes %q, unlike the program", m[1], scopes)
			}
		}
	}
}

// TestBodies checks that handlers read the members of the wire types of their bodies: they report required members that
// are missing, and only other members as unknown.
func TestBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for _, r := range Routes() {
		if r.Body == nil {
			continue
		}
		nulls, want := make(map[string]any), []string{"#/no_member unknown member"}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(r.Body)) {
			member, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			nulls[member] = nil
			if options == "" {
				want = append(want, "#/"+member+" is required")
			}
		}
		faults := func(body map[string]any) (all []string) {
			text, err := json.Marshal(body)
			must(t, err)
			w := ask(g, f.keys["full"], r.Method, strings.Replace(r.Path, "{id}", "0", 1), string(text))
			var document struct{ Errors problem.Faults }
			must(t, json.Unmarshal(w.Body.Bytes(), &document))
			for _, fault := range document.Errors {
				all = append(all, fault.Pointer+" "+fault.Detail)
			}
			return slices.Sorted(slices.Values(all))
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), faults(map[string]any{"no_member": 1})); diff != "" {
			t.Errorf("%s: faults of a body without members (-wire type +handler):\n%s", r.Name, diff)
		}
		if all := strings.Join(faults(nulls), "; "); strings.Contains(all, "unknown member") {
			t.Errorf("%s: %s", r.Name, all)
		}
	}
}

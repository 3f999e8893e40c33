package gateway_test

import (
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/gateway/problem"
)

// TestBodies checks that handlers read the members of the wire types of their bodies: they report required members that
// are missing, and only other members as unknown.
func TestBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	faults := func(r gateway.Route, body any) (pointers []string) {
		text, err := json.Marshal(body)
		must(t, err)
		w := ask(g, f.keys["full"], r.Method, strings.Replace(r.Path, "{id}", "0", 1), string(text))
		var document struct{ Errors problem.Faults }
		must(t, json.Unmarshal(w.Body.Bytes(), &document))
		for _, fault := range document.Errors {
			pointers = append(pointers, fault.Pointer+" "+fault.Detail)
		}
		slices.Sort(pointers)
		return pointers
	}
	for _, r := range gateway.Routes() {
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
		slices.Sort(want)
		if diff := cmp.Diff(want, faults(r, map[string]any{"no_member": 1})); diff != "" {
			t.Errorf("%s: faults of a body without members (-wire type +handler):\n%s", r.Name, diff)
		}
		for _, fault := range faults(r, nulls) {
			if strings.HasSuffix(fault, "unknown member") {
				t.Errorf("%s: %s", r.Name, fault)
			}
		}
	}
}

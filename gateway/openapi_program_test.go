package gateway_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/store"
)

// TestOpenAPIRoutes compares routes, their scopes and their parameters with the program.
func TestOpenAPIRoutes(t *testing.T) {
	d := openAPI(t)
	if base := d["servers"].([]any)[0].(map[string]any)["url"]; base != gateway.Base {
		t.Errorf("servers: %v, want %s", base, gateway.Base)
	}
	described := make(map[string][]string)
	for _, o := range d.routes() {
		scopes := []string{}
		security, _ := o.spec["security"].([]any)
		for _, alternative := range security {
			for _, s := range alternative.(map[string]any)["apiKey"].([]any) {
				scopes = append(scopes, s.(string))
			}
		}
		described[o.name] = scopes

		for _, tag := range o.spec["tags"].([]any) {
			if !slices.ContainsFunc(d["tags"].([]any), func(t any) bool { return t.(map[string]any)["name"] == tag }) {
				t.Errorf("%s: the tag %s is not described, so the page does not show the route", o.name, tag)
			}
		}
		got := []string{}
		for _, p := range o.parameters() {
			got = append(got, p["name"].(string))
		}
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(o.path, -1) {
			if !slices.Contains(got, m[1]) {
				t.Errorf("%s: the path parameter %s is not described", o.name, m[1])
			}
			got = slices.DeleteFunc(got, func(name string) bool { return name == m[1] })
		}
		want := append([]string{}, gateway.RouteParameters()[o.name]...)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: parameters (-RouteParameters +openapi.json):\n%s", o.name, diff)
		}
		if body, _ := json.Marshal(o.response(200)); strings.Contains(string(body), "Page\"") && !slices.Contains(got, "cursor") {
			t.Errorf("%s: a list without a cursor", o.name)
		}
	}
	if diff := cmp.Diff(gateway.RouteScopes(), described); diff != "" {
		t.Errorf("routes and scopes (-program +openapi.json):\n%s", diff)
	}
}

// TestOpenAPISchemas compares the members of the schemas of responses with the wire types: names, types, and whether they
// are required.
func TestOpenAPISchemas(t *testing.T) {
	d := openAPI(t)
	wireTypes := gateway.WireTypes()
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		s := s.(map[string]any)
		properties, ok := s["properties"].(map[string]any)
		if !ok || s["additionalProperties"] == false { // a value, or the body of a request
			continue
		}
		wire, ok := wireTypes[name]
		if !ok {
			t.Errorf("the schema %s has no wire type in gateway.WireTypes", name)
			continue
		}
		delete(wireTypes, name)
		var members, required []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(wire)) {
			if f.Anonymous {
				continue
			}
			member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			members = append(members, member)
			wireType := f.Type
			if options != "omitempty" {
				required = append(required, member)
			} else if wireType.Kind() == reflect.Pointer {
				wireType = wireType.Elem() // left out, never null
			}
			if p, ok := properties[member]; ok {
				if got, want := d.typesOf(p), wireJSONTypes(wireType); !slices.ContainsFunc(want, func(w string) bool { return w == strings.Join(got, " or ") }) {
					t.Errorf("%s.%s: type %v, want one of %q", name, member, got, want)
				}
			}
		}
		var describedMembers, describedRequired []string
		for member := range properties {
			describedMembers = append(describedMembers, member)
		}
		for _, member := range s["required"].([]any) {
			describedRequired = append(describedRequired, member.(string))
		}
		slices.Sort(members)
		slices.Sort(describedMembers)
		if diff := cmp.Diff(members, describedMembers); diff != "" {
			t.Errorf("%s: members (-program +openapi.json):\n%s", name, diff)
		}
		if diff := cmp.Diff(required, describedRequired); diff != "" {
			t.Errorf("%s: required (-program +openapi.json):\n%s", name, diff)
		}
	}
	for name := range wireTypes {
		t.Errorf("the wire type %s has no schema", name)
	}
}

// typesOf returns the JSON types that a schema allows, null last.
func (d schemaDocument) typesOf(schema any) (types []string) {
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return d.typesOf(d.at(ref))
	}
	alternatives, _ := s["anyOf"].([]any)
	for _, a := range alternatives {
		types = append(types, d.typesOf(a)...)
	}
	switch t := s["type"].(type) {
	case string:
		types = append(types, t)
	case []any:
		for _, v := range t {
			types = append(types, v.(string))
		}
	}
	return types
}

// wireJSONTypes returns the alternatives that a Go type can have. A nil slice is null where the schema says so.
func wireJSONTypes(t reflect.Type) []string {
	if t == reflect.TypeFor[json.RawMessage]() {
		return []string{"object", "object or null"}
	}
	if t.Kind() == reflect.Pointer {
		return []string{wireJSONTypes(t.Elem())[0] + " or null"}
	}
	switch t.Kind() {
	case reflect.String:
		return []string{"string"}
	case reflect.Int, reflect.Int64:
		return []string{"integer"}
	case reflect.Float64:
		return []string{"number"}
	case reflect.Bool:
		return []string{"boolean"}
	case reflect.Slice:
		return []string{"array", "array or null"}
	}
	return []string{"object"}
}

// TestOpenAPIValues compares enumerations, patterns and bounds with those of the program.
func TestOpenAPIValues(t *testing.T) {
	d := openAPI(t)
	got := make(map[string][]string)
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		values, _ := s.(map[string]any)["enum"].([]any)
		for _, v := range values {
			got[name] = append(got[name], v.(string))
		}
	}
	if diff := cmp.Diff(gateway.Enumerations(), got); diff != "" {
		t.Errorf("enumerations (-program +openapi.json):\n%s", diff)
	}
	for name, want := range gateway.Patterns() {
		if got := d.at("#/components/schemas/" + name).(map[string]any)["pattern"]; got != want {
			t.Errorf("%s: pattern %v, want %s", name, got, want)
		}
	}
	for name, prefix := range map[string]string{"RunId": "run", "RecommendationId": "rec", "AlertId": "alert", "CredentialId": "cred", "WebhookId": "wh", "EventId": "evt", "RequestId": "req"} {
		for _, f := range d.faults(d.at("#/components/schemas/"+name), store.NewID().Text(prefix), name) {
			t.Error(f)
		}
	}
	for at, want := range gateway.Bounds() {
		if got := d.at(at); got != want {
			t.Errorf("%s: %v, want %s", at, got, want)
		}
	}
}

// A problemCode is an entry of the schema ProblemCode.
type problemCode struct {
	code   string
	status int
	check  string
}

func (d schemaDocument) codes() (all []problemCode) {
	for _, c := range d.at("#/components/schemas/ProblemCode/oneOf").([]any) {
		c := c.(map[string]any)
		check, _ := c["x-check"].(string)
		status, _ := c["x-status"].(json.Number).Int64()
		all = append(all, problemCode{c["const"].(string), int(status), check})
	}
	return all
}

// TestProblemCodes compares the codes with the table of the program and with the golden files. The golden files show the
// codes of run checks, which the gateway does not know.
func TestProblemCodes(t *testing.T) {
	described := make(map[string]problemCode)
	for _, c := range openAPI(t).codes() {
		described[c.code] = c
	}
	for code, status := range gateway.ProblemStatuses() {
		if described[code].status != status {
			t.Errorf("%s: status %d in openapi.json, %d in the program", code, described[code].status, status)
		}
	}
	shown := make(map[string]bool)
	for _, g := range goldenExchanges(t) {
		for _, a := range g.answers {
			code := a.code()
			if code == "" {
				continue
			}
			shown[code] = true
			var p struct{ Check string }
			must(t, json.Unmarshal(a.body, &p))
			if c := described[code]; c.status != a.status || p.Check != "" && c.check != p.Check {
				t.Errorf("%s: %s with status %d and check %q; openapi.json has status %d and check %q", g.file, code, a.status, p.Check, c.status, c.check)
			}
		}
	}
	for code := range described {
		if !shown[code] {
			t.Errorf("no golden file shows the code %s", code)
		}
	}
}

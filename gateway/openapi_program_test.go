package gateway

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/checks"
	"aiv/insights/visibility"
)

// An outline describes a route, or a value, by its parts: "request.locale" is a "string". The name of an optional
// member ends with "?".
type outline map[string]string

// TestOpenAPIRoutes compares the operations with the routes of the program: scopes, parameters, and the wire types of
// bodies.
func TestOpenAPIRoutes(t *testing.T) {
	d := openAPI(t)
	if base := d["servers"].([]any)[0].(map[string]any)["url"]; base != Base {
		t.Errorf("servers: %v, want %s", base, Base)
	}
	want, got := map[string]outline{"problems": {}}, map[string]outline{"problems": {}}
	used := map[string]bool{"Envelope": true}
	want["problems"].addType("problem", reflect.TypeOf(Problem()))
	got["problems"].addSchema("problem", d, map[string]any{"$ref": "#/components/schemas/Problem"}, used)
	for _, r := range Routes() {
		o := outline{"scopes": strings.Join(r.Scopes, " ")}
		for _, name := range r.Query {
			o["query "+name] = "parameter"
		}
		for _, name := range r.Header {
			o["header "+name] = "parameter"
		}
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(r.Path, -1) {
			o["path "+m[1]] = "parameter"
		}
		o.addType("request", reflect.TypeOf(r.Body))
		o.addType("response", reflect.TypeOf(r.Response))
		want[r.Name] = o
	}
	for _, o := range d.routes() {
		got[o.name] = o.outline(used)
		for _, tag := range o.spec["tags"].([]any) {
			named := func(t any) bool { return t.(map[string]any)["name"] == tag }
			if !slices.ContainsFunc(d["tags"].([]any), named) {
				t.Errorf("%s: the tag %s is not described, so the page does not show the route", o.name, tag)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-program +openapi.json):\n%s", diff)
	}
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		if !used[name] && s.(map[string]any)["properties"] != nil {
			t.Errorf("no route has the schema %s", name)
		}
	}
}

// outline returns the outline of the operation, with its successes as the response. used receives the names of schemas.
func (o *operation) outline(used map[string]bool) outline {
	var scopes []string
	described, _ := o.spec["x-scopes"].([]any)
	for _, s := range described {
		scopes = append(scopes, s.(string))
	}
	all := outline{"scopes": strings.Join(scopes, " ")}
	for _, p := range o.parameters() {
		all[p["in"].(string)+" "+p["name"].(string)] = "parameter"
	}
	addBody := func(at string, body any) {
		if content, ok := body.(map[string]any)["content"].(map[string]any); ok {
			all.addSchema(at, o.schemaDocument, content["application/json"].(map[string]any)["schema"], used)
		}
	}
	if body, ok := o.spec["requestBody"]; ok {
		addBody("request", body)
	}
	for status, response := range o.spec["responses"].(map[string]any) {
		if status[0] == '2' {
			addBody("response", o.resolve(response))
		}
	}
	return all
}

// addType adds a wire type and its members.
func (o outline) addType(at string, t reflect.Type) {
	if t == nil {
		return
	}
	o[at] = jsonType(t)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if jsonType(t) == "array" {
		o.addType(at+"[]", t.Elem())
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
		case options != "omitempty":
			o.addType(at+"."+member, f.Type)
		case f.Type.Kind() == reflect.Pointer: // left out, never null
			o.addType(at+"."+member+"?", f.Type.Elem())
		default:
			o.addType(at+"."+member+"?", f.Type)
		}
	}
}

// addSchema adds a schema and the members of its objects.
func (o outline) addSchema(at string, d schemaDocument, schema any, used map[string]bool) {
	ref, _ := schema.(map[string]any)["$ref"].(string)
	used[strings.TrimPrefix(ref, "#/components/schemas/")] = true
	s := d.resolve(schema)
	if alternatives, ok := s["anyOf"].([]any); ok { // the other is null
		o.addSchema(at, d, alternatives[0], used)
		o[at] += " or null"
		return
	}
	switch t := s["type"].(type) {
	case string:
		o[at] = t
	case []any: // a slice may be null where the schema says so
		o[at] = strings.Replace(fmt.Sprint(t[0], " or ", t[1]), "array or null", "array", 1)
	}
	if items, ok := s["items"]; ok {
		o.addSchema(at+"[]", d, items, used)
	}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if !slices.Contains(required, any(name)) {
			name += "?"
		}
		o.addSchema(at+"."+name, d, p, used)
	}
}

// jsonType returns the JSON type of a Go type.
func jsonType(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return jsonType(t.Elem()) + " or null"
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
	case t == reflect.TypeFor[visibility.Decimal]():
		return "number"
	}
	return map[reflect.Kind]string{
		reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number",
		reflect.Bool: "boolean", reflect.Slice: "array", reflect.Struct: "object",
	}[t.Kind()]
}

// TestOpenAPIValues compares enumerations, patterns and bounds with those of the program.
func TestOpenAPIValues(t *testing.T) {
	d := openAPI(t)
	for at, want := range Values() {
		if diff := cmp.Diff(want, d.at(at)); diff != "" {
			t.Errorf("%s (-program +openapi.json):\n%s", at, diff)
		}
	}
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		at := "#/components/schemas/" + name + "/enum"
		if s.(map[string]any)["enum"] != nil && Values()[at] == nil && name != "ProblemCode" { // TestProblemCodes
			t.Errorf("the program has no values of %s", name)
		}
	}
}

// A problemCode is an entry of x-problems of the schema ProblemCode.
type problemCode struct {
	code   string
	status int
	check  string
}

func (d schemaDocument) codes() (all []problemCode) {
	for _, c := range d.at("#/components/schemas/ProblemCode/x-problems").([]any) {
		c := c.(map[string]any)
		check, _ := c["check"].(string)
		status, _ := c["status"].(json.Number).Int64()
		all = append(all, problemCode{c["code"].(string), int(status), check})
	}
	return all
}

// TestProblemCodes compares the codes with the table of the program and with the golden files, which show each code,
// and a rejection by each run check.
func TestProblemCodes(t *testing.T) {
	described, shown, checked := make(map[string]problemCode), make(map[string]bool), make(map[string]bool)
	for _, c := range openAPI(t).codes() {
		described[c.code] = c
	}
	for code, status := range ProblemStatuses() {
		if described[code].status != status {
			t.Errorf("%s: status %d in openapi.json, %d in the program", code, described[code].status, status)
		}
	}
	for _, g := range goldenExchanges(t) {
		for _, a := range g.answers {
			code := a.code()
			if code == "" {
				continue
			}
			var p struct{ Check string }
			must(t, json.Unmarshal(a.body, &p))
			shown[code], checked[p.Check] = true, true
			got := problemCode{code, a.status, p.Check}
			if want := described[code]; got.status != want.status || p.Check != "" && got != want {
				t.Errorf("%s: %+v; openapi.json has %+v", g.file, got, want)
			}
		}
	}
	for code := range described {
		if !shown[code] {
			t.Errorf("no golden file shows the code %s", code)
		}
	}
	for _, c := range checks.Standard() {
		if !checked[c.Name] {
			t.Errorf("no golden file shows a rejection by the check %s", c.Name)
		}
	}
}

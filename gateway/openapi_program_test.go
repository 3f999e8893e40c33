package gateway_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/store"
)

// TestOpenAPIRoutes compares the operations with the routes of the program: scopes, parameters, and the wire types of
// bodies.
func TestOpenAPIRoutes(t *testing.T) {
	d := openAPI(t)
	if base := d["servers"].([]any)[0].(map[string]any)["url"]; base != gateway.Base {
		t.Errorf("servers: %v, want %s", base, gateway.Base)
	}
	described := make(map[string]operation)
	for _, o := range d.routes() {
		described[o.name] = o
	}
	compared := map[string]reflect.Type{"Envelope": nil}
	problem := map[string]any{"$ref": "#/components/schemas/Problem"}
	d.compareWire(t, "Problem", reflect.TypeOf(gateway.Problem()), problem, compared)
	for _, r := range gateway.Routes() {
		o, ok := described[r.Name]
		if !ok {
			t.Errorf("openapi.json has no operation %s", r.Name)
			continue
		}
		delete(described, r.Name)
		o.compareScopes(t, r)
		o.compareParameters(t, r)
		o.compareBodies(t, r, compared)
	}
	for name := range described {
		t.Errorf("the program has no route %s", name)
	}
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		if _, ok := compared[name]; !ok && s.(map[string]any)["properties"] != nil {
			t.Errorf("no route has the schema %s", name)
		}
	}
}

func (o *operation) compareScopes(t *testing.T, r gateway.Route) {
	t.Helper()
	scopes := []string{}
	described, _ := o.spec["x-scopes"].([]any)
	for _, s := range described {
		scopes = append(scopes, s.(string))
	}
	if diff := cmp.Diff(r.Scopes, scopes); diff != "" {
		t.Errorf("%s: scopes (-program +openapi.json):\n%s", o.name, diff)
	}
	for _, tag := range o.spec["tags"].([]any) {
		named := func(t any) bool { return t.(map[string]any)["name"] == tag }
		if !slices.ContainsFunc(o.schemaDocument["tags"].([]any), named) {
			t.Errorf("%s: the tag %s is not described, so the page does not show the route", o.name, tag)
		}
	}
}

func (o *operation) compareParameters(t *testing.T, r gateway.Route) {
	t.Helper()
	want := []string{}
	for in, names := range map[string][]string{"query": r.Query, "header": r.Header} {
		for _, name := range names {
			want = append(want, in+" "+name)
		}
	}
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(o.path, -1) {
		want = append(want, "path "+m[1])
	}
	got := []string{}
	for _, p := range o.parameters() {
		got = append(got, p["in"].(string)+" "+p["name"].(string))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: parameters (-program +openapi.json):\n%s", o.name, diff)
	}
}

// compareBodies compares the schemas of the bodies of requests and successes with the wire types of the route.
func (o *operation) compareBodies(t *testing.T, r gateway.Route, compared map[string]reflect.Type) {
	t.Helper()
	schemaOf := func(content any) any {
		if content == nil {
			return nil
		}
		return content.(map[string]any)["application/json"].(map[string]any)["schema"]
	}
	compare := func(which string, wire, schema any) {
		t.Helper()
		if (wire == nil) != (schema == nil) {
			t.Errorf("%s: the wire type of the %s is %T, the schema %v", o.name, which, wire, schema)
		} else if wire != nil {
			o.compareWire(t, o.name, reflect.TypeOf(wire), schema, compared)
		}
	}
	var request any
	if body, ok := o.spec["requestBody"].(map[string]any); ok {
		request = schemaOf(body["content"])
	}
	compare("request", r.Body, request)
	for status, response := range o.spec["responses"].(map[string]any) {
		if status[0] == '2' {
			compare("response", r.Response, schemaOf(o.resolve(response)["content"]))
		}
	}
}

// TestOpenAPIValues compares enumerations, patterns and bounds with those of the program.
func TestOpenAPIValues(t *testing.T) {
	d := openAPI(t)
	got := make(map[string][]string)
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		values, _ := s.(map[string]any)["enum"].([]any)
		if name == "ProblemCode" {
			continue // TestProblemCodes compares it
		}
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

// TestProblemCodes compares the codes with the table of the program and with the golden files. The golden files show
// the codes of run checks, which the gateway does not know.
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

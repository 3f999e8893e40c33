package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/catalog"
	"aiv/checks"
	"aiv/gateway/problem"
	"aiv/insights"
	"aiv/insights/brands"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/results"
	"aiv/runs/schedules"
	"aiv/store/storetest"
)

// TestOpenAPIRoutes compares the operations with the routes of the program: scopes and parameters.
func TestOpenAPIRoutes(t *testing.T) {
	d := openAPI(t)
	if base := d["servers"].([]any)[0].(map[string]any)["url"]; base != Base {
		t.Errorf("servers: %v, want %s", base, Base)
	}
	want, got := make(map[string][]string), make(map[string][]string)
	for i := range routes {
		r := &routes[i]
		all := append([]string{}, r.scopes...)
		for _, name := range r.input.query {
			all = append(all, "query "+name)
		}
		for _, name := range r.input.header {
			all = append(all, "header "+name)
		}
		if strings.Contains(r.path, "{id}") {
			all = append(all, "path id")
		}
		want[r.name()] = slices.Sorted(slices.Values(all))
	}
	for _, o := range d.routes() {
		var all []string
		scopes, _ := o.spec["x-scopes"].([]any)
		for _, scope := range scopes {
			all = append(all, scope.(string))
		}
		for _, p := range o.parameters() {
			all = append(all, p["in"].(string)+" "+p["name"].(string))
		}
		got[o.name] = slices.Sorted(slices.Values(all))
		for _, tag := range o.spec["tags"].([]any) {
			named := func(t any) bool { return t.(map[string]any)["name"] == tag }
			if !slices.ContainsFunc(d["tags"].([]any), named) {
				t.Errorf("%s: the tag %s is not described, so the page does not show the route", o.name, tag)
			}
		}
	}
	storetest.Equal(t, want, got, "routes of the program and of openapi.json")
}

// TestOpenAPIBodies checks that handlers read the members of a body that the document describes: they report required
// members that are missing, and only other members as unknown.
func TestOpenAPIBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway()
	for _, o := range openAPI(t).routes() {
		schema := o.bodySchema()
		if schema == nil {
			continue
		}
		faults := func(body map[string]any) (all []string) {
			text, err := json.Marshal(body)
			must(t, err)
			w := ask(g, f.keys["full"], o.method, strings.Replace(o.path, "{id}", "0", 1), string(text))
			var document struct{ Errors problem.Faults }
			must(t, json.Unmarshal(w.Body.Bytes(), &document))
			for _, fault := range document.Errors {
				all = append(all, fault.Pointer+" "+fault.Detail)
			}
			return slices.Sorted(slices.Values(all))
		}
		want := []string{"#/no_member unknown member"}
		required, _ := schema["required"].([]any)
		for _, member := range required {
			want = append(want, fmt.Sprintf("#/%s is required", member))
		}
		storetest.Equal(t, slices.Sorted(slices.Values(want)), faults(map[string]any{"no_member": 1}), o.name)
		nulls := make(map[string]any)
		described, _ := schema["properties"].(map[string]any)
		for member := range described {
			nulls[member] = nil
		}
		if all := strings.Join(faults(nulls), "; "); strings.Contains(all, "unknown member") {
			t.Errorf("%s: %s", o.name, all)
		}
	}
}

// TestOpenAPIValues compares enumerations, patterns and bounds of the document with the program's.
func TestOpenAPIValues(t *testing.T) {
	d, values := openAPI(t), programValues()
	for at, want := range values {
		storetest.Equal(t, want, fmt.Sprint(d.at(at)), at)
	}
	for name, s := range d.at("#/components/schemas").(map[string]any) {
		at := "#/components/schemas/" + name + "/enum"
		if s.(map[string]any)["enum"] != nil && values[at] == "" && name != "ProblemCode" { // TestProblemCodes
			t.Errorf("the program has no values of %s", name)
		}
	}
}

// programValues returns the enumerations, patterns and bounds of the program by their JSON pointers in openapi.json.
func programValues() map[string]string {
	const schemas, parameters = "#/components/schemas/", "#/components/parameters/"
	all := make(map[string]string)
	for name, values := range map[string][]string{
		"Scope": auth.Scopes, "RunStatus": runs.Statuses, "JobStatus": results.Statuses, "ModelStatus": catalog.ModelStatuses,
		"QuestionStatus": catalog.QuestionStatuses, "Dependency": catalog.Dependencies, "Category": insights.Categories,
		"Priority": insights.Priorities, "RecommendationStatus": insights.RecommendationStatuses,
		"Severity": insights.Severities, "AlertType": insights.AlertTypes, "AlertStatus": insights.AlertStatuses,
		"Direction": insights.Directions,
		"EventType": events.Types(), "EventSelector": append([]string{webhooks.All}, events.Types()...),
		"DeliveryStatus": webhooks.DeliveryStatuses(), "Cadence": schedules.Cadences, "ScheduleStatus": schedules.Statuses,
		"OccurrenceStatus": schedules.OccurrenceStatuses, "PausedReason": schedules.PausedReasons,
		"Weekday":   slices.Concat(schedules.Weekdays[1:], schedules.Weekdays[:1]),
		"BrandKind": brands.Kinds, "BrandStatus": brands.Statuses, "Flag": {"absence", "conflict", "echo"},
		"MissingReason": {visibility.NoAnswers, visibility.NoSources, visibility.NoMentions, visibility.NoCompetitors,
			visibility.NoCitations},
		"Verdict":        {visibility.Up, visibility.Down, visibility.NoClearChange, visibility.NotComparable},
		"SourceOwner":    {visibility.OwnerOwn, visibility.OwnerCompetitor, visibility.OwnerOther},
		"DisabledReason": {webhooks.ByCustomer, webhooks.ByOperator, webhooks.Gone, webhooks.Failing},
		"DeliveryError": {webhooks.ErrorStatus, webhooks.ErrorTimeout, webhooks.ErrorConnection, webhooks.ErrorTLS,
			webhooks.ErrorRedirect, webhooks.ErrorBlocked},
	} {
		all[schemas+name+"/enum"] = fmt.Sprint(values)
	}
	all[schemas+"Dimension/enum"] = fmt.Sprint(visibility.Dimensions)
	for name, p := range map[string]pattern{"CatalogId": catalogID, "MeasurementType": measurementType, "Locale": locale,
		"Country": country, "Language": language} {
		all[schemas+name+"/pattern"] = p.form().String()
	}
	for at, bound := range map[string]int{
		schemas + "NewRun/properties/model_ids/maxItems":                maxModels,
		schemas + "NewRun/properties/question_ids/maxItems":             maxQuestions,
		schemas + "NewWebhook/properties/url/maxLength":                 webhooks.MaxURL,
		schemas + "NewWebhook/properties/description/maxLength":         webhooks.MaxDescription,
		schemas + "WebhookChange/properties/url/maxLength":              webhooks.MaxURL,
		schemas + "WebhookChange/properties/description/maxLength":      webhooks.MaxDescription,
		schemas + "Credential/properties/rate_limit_per_minute/maximum": auth.MaxRateLimit,
		parameters + "Limit/schema/maximum":                             maxLimit,
		parameters + "Limit/schema/default":                             defaultLimit,
		parameters + "Cursor/schema/maxLength":                          maxCursor,
	} {
		all[at] = fmt.Sprint(bound)
	}
	return all
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
	for _, kind := range problem.Kinds() {
		if status := described[kind.Code].status; status != kind.Status {
			t.Errorf("%s: status %d in openapi.json, %d in the program", kind.Code, status, kind.Status)
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

// TestEveryEventTypeHasAScope: events of a type that the gateway does not know would be hidden, and a subscription to
// all types be refused.
func TestEveryEventTypeHasAScope(t *testing.T) {
	for _, name := range events.Types() {
		if _, known := readScope(name); !known {
			t.Errorf("eventTypes lacks %s; add the capability of the package that causes it", name)
		}
	}
}

// TestReadmeRoutes checks that the program has each route in the table of README.md, with these scopes. openapi.json,
// not the README, lists all routes.
func TestReadmeRoutes(t *testing.T) {
	scopes := make(map[string]string)
	for i := range routes {
		scopes[routes[i].name()] = cmp.Or(strings.Join(routes[i].scopes, "` or `"), "none")
	}
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	rows := regexp.MustCompile("(?m)^\\| (`[A-Z]+ /v1/.*) \\| `?(.*?)`? \\|$").FindAllStringSubmatch(string(readme), -1)
	if rows == nil {
		t.Fatal("README.md has no table of routes and scopes")
	}
	for _, row := range rows {
		for name := range strings.SplitSeq(strings.Trim(row[1], "`"), "`, `") {
			if scopes[name] != row[2] {
				t.Errorf("README.md lists %s with the scopes %s, and the program has %s", name, row[2], scopes[name])
			}
		}
	}
}

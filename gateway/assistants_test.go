package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/auth"
	"aiv/gateway"
	"aiv/gateway/mcp"
	"aiv/gateway/reference"
)

// TestToolsAndRoutes compares the arguments of each tool with the parameters and the body of its route in openapi.json.
func TestToolsAndRoutes(t *testing.T) {
	d := openAPI(t)
	ofTools := map[string]bool{"list_results answer_chars": true, "query_metrics metrics": true, "compare_metrics metrics": true}
	notOfTools := map[string]bool{"list_runs id": true}
	for _, tool := range mcp.Tools() {
		var o *operation
		for _, r := range d.routes() {
			if r.name == tool.Route {
				o = &r
			}
		}
		if o == nil {
			t.Errorf("%s: openapi.json has no %s", tool.Name, tool.Route)
			continue
		}
		want := make(map[string]map[string]any)
		parameters, _ := o.spec["parameters"].([]any)
		for _, p := range parameters {
			p := d.resolve(p)
			switch name := p["name"].(string); {
			case name == "id" && p["in"] == "path":
				want["run_id"] = d.argumentOf(p["schema"])
			case p["in"] == "query" && !notOfTools[tool.Name+" "+name]:
				want[name] = d.argumentOf(p["schema"])
			case name == "Idempotency-Key":
				want["idempotency_key"] = d.argumentOf(p["schema"])
			}
		}
		if body, ok := o.spec["requestBody"].(map[string]any); ok {
			content := d.resolve(d.resolve(body)["content"])["application/json"].(map[string]any)
			properties, _ := d.resolve(content["schema"])["properties"].(map[string]any)
			for name, p := range properties {
				want[name] = d.argumentOf(p)
			}
		}
		got := make(map[string]map[string]any)
		var schema struct{ Properties map[string]map[string]any }
		decoder := json.NewDecoder(bytes.NewReader(tool.InputSchema))
		decoder.UseNumber()
		must(t, decoder.Decode(&schema))
		for name, p := range schema.Properties {
			if !ofTools[tool.Name+" "+name] {
				got[name] = schemaDocument(nil).argumentOf(map[string]any(p))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-%s +tool):\n%s", tool.Name, tool.Route, diff)
		}
	}
}

// argumentOf returns what a schema of a parameter and that of an argument have in common: the type, the words, and the
// bounds.
func (d schemaDocument) argumentOf(schema any) map[string]any {
	s, ok := schema.(map[string]any)
	if _, isRef := s["$ref"]; ok && isRef {
		s = d.resolve(s)
	}
	a := map[string]any{"type": s["type"]}
	for _, keyword := range []string{"enum", "minimum", "maximum"} {
		if v, ok := s[keyword]; ok {
			a[keyword] = v
		}
	}
	if items, ok := s["items"]; ok {
		item := d.argumentOf(items)
		delete(item, "minimum")
		a["items"] = item
		if bound, ok := s["maxItems"]; ok && item["enum"] == nil {
			a["maxItems"] = bound
		}
	}
	return a
}

// TestToolsAreDescribed: the reference names each tool with its route.
func TestToolsAreDescribed(t *testing.T) {
	for _, d := range reference.Documents() {
		if d.Path != "/docs.md" {
			continue
		}
		for _, tool := range mcp.Tools() {
			if want := fmt.Sprintf("- `%s`: `%s`. %s\n", tool.Name, tool.Route, tool.Description); !strings.Contains(string(d.Body), want) {
				t.Errorf("the section Assistants does not have the line %s", want)
			}
		}
	}
}

// message sends a message of the legacy era and returns the decoded result.
func message(t *testing.T, g *gateway.Gateway, key, body string, result any) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("POST", gateway.Base+"/mcp", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	var response struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &response))
	if response.Error != nil {
		t.Fatalf("%s: %s", body, response.Error.Message)
	}
	must(t, json.Unmarshal(response.Result, result))
	return w
}

// A toolResult is the result of a call.
type toolResult struct {
	Content []struct {
		Text string
	}
	StructuredContent json.RawMessage
	IsError           bool
}

func callTool(t *testing.T, g *gateway.Gateway, key, name string, arguments map[string]any) (r toolResult) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": arguments}})
	must(t, err)
	message(t, g, key, string(body), &r)
	if len(r.Content[0].Text) > mcp.MaxResult {
		t.Errorf("%s returns %d bytes", name, len(r.Content[0].Text))
	}
	if !r.IsError && string(r.StructuredContent) != r.Content[0].Text {
		t.Errorf("%s: the text differs from structuredContent", name)
	}
	return r
}

// TestToolList: a key sees the tools of its scopes, and the list is small.
func TestToolList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	scopesOf := make(map[string][]string)
	for _, r := range gateway.Routes() {
		scopesOf[r.Name] = r.Scopes
	}
	scopes := []string{"runs:read", "runs:write", "recommendations:read", "alerts:read"}
	for set := range 1 << len(scopes) {
		held := []string{"webhooks:manage"}
		for i, s := range scopes {
			if set>>i&1 == 1 {
				held = append(held, s)
			}
		}
		name := fmt.Sprint("set", set)
		f.issue(t, name, "golden", held, 1000)
		var want []string
		for _, tool := range mcp.Tools() {
			needs := scopesOf[tool.Route]
			if len(needs) == 0 || slices.ContainsFunc(needs, func(s string) bool { return slices.Contains(held, s) }) {
				want = append(want, tool.Name)
			}
		}
		var list struct{ Tools []struct{ Name string } }
		w := message(t, g, f.keys[name], `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, &list)
		var got []string
		for _, tool := range list.Tools {
			got = append(got, tool.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", held, diff)
		}
		if n := w.Body.Len(); n > 12_000 {
			t.Errorf("the list has %d bytes", n)
		}
	}
	if len(scopes)+1 != len(auth.Scopes) {
		t.Errorf("the test knows %v, the program %v", scopes, auth.Scopes)
	}
	var connected struct{ Instructions string }
	message(t, g, f.keys["full"], `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, &connected)
	if n := len(connected.Instructions); n == 0 || n >= 2000 {
		t.Errorf("the instructions have %d bytes", n)
	}
}

// TestToolPages: over three pages, each list has the same items as its route, and the cursor of a tool is valid at the
// route.
func TestToolPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	key := f.keys["full"]
	for range 7 {
		f.run(t, g, key)
	}
	_, err := f.pool.Exec(t.Context(), `INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
		SELECT $1, gen_random_uuid(), i, 'competitor', 'Brand ' || i, '{}', '{}', '{}', false, 'active' FROM generate_series(1, 8) i`, f.accounts["golden"])
	must(t, err)
	for _, tool := range mcp.Tools() {
		if !tool.Has("cursor") || tool.Has("run_id") && tool.Name == "list_results" {
			continue
		}
		path := strings.TrimPrefix(tool.Route, "GET ")
		var items, routes []json.RawMessage
		cursor := ""
		for n := 1; n <= 3; n++ {
			arguments := map[string]any{"limit": 2}
			if cursor != "" {
				arguments["cursor"] = cursor
			}
			var page listPage
			must(t, json.Unmarshal(callTool(t, g, key, tool.Name, arguments).StructuredContent, &page))
			items = append(items, page.Data...)
			var of listPage
			must(t, json.Unmarshal(ask(g, key, "GET", path+"?"+url.Values{"limit": {"2"}, "cursor": {cursor}}.Encode(), "").Body.Bytes(), &of))
			if cursor == "" {
				must(t, json.Unmarshal(ask(g, key, "GET", path+"?limit=2", "").Body.Bytes(), &of))
			}
			routes = append(routes, of.Data...)
			if cursor = page.NextCursor; cursor != of.NextCursor {
				t.Errorf("%s, page %d: the cursors differ", tool.Name, n)
			}
			if cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(itemTexts(routes), itemTexts(items)); diff != "" {
			t.Errorf("%s (-route +tool):\n%s", tool.Name, diff)
		}
	}
}

type listPage struct {
	Data       []json.RawMessage
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
}

func itemTexts(list []json.RawMessage) (all []string) {
	for _, item := range list {
		all = append(all, string(item))
	}
	return all
}

// run creates a run of one job.
func (f *fixture) run(t *testing.T, g *gateway.Gateway, key string) (id string) {
	t.Helper()
	made := askWith(g, key, fmt.Sprintf("run-%d", len(f.keys)+f.made), "POST", "/v1/runs",
		`{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`)
	f.made++
	var run struct{ ID string }
	must(t, json.Unmarshal(made.Body.Bytes(), &run))
	if made.Code != http.StatusAccepted {
		t.Fatal(made.Body)
	}
	return run.ID
}

// TestToolSize: a list ends before 40,000 bytes, whatever its items are, and continues after its last item.
func TestToolSize(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	key := f.keys["full"]
	account := f.accounts["golden"]
	for range 60 {
		f.run(t, g, key)
	}
	// All ids are found over pages that are as large as possible. The runs differ by the length of their last model id.
	sizes := []int{2, 3, 5, 11, 100, 500, 1000, 1999}
	for i, n := range sizes {
		_, err := f.pool.Exec(t.Context(), `UPDATE measurement_runs SET model_ids = array_fill(repeat('é', $2)::text, ARRAY[1]) WHERE account_id = $1`, account, n)
		must(t, err)
		var all []string
		arguments := map[string]any{"limit": 200}
		for pages := 1; ; pages++ {
			r := callTool(t, g, key, "list_runs", arguments)
			if r.IsError {
				t.Fatalf("%s", r.Content[0].Text)
			}
			var page listPage
			must(t, json.Unmarshal(r.StructuredContent, &page))
			for _, item := range page.Data {
				var run struct{ ID string }
				must(t, json.Unmarshal(item, &run))
				all = append(all, run.ID)
			}
			if page.HasMore != (page.NextCursor != "") {
				t.Errorf("has_more is %v, next_cursor %q", page.HasMore, page.NextCursor)
			}
			if !page.HasMore {
				break
			}
			// One more item would not fit.
			if size := len(r.Content[0].Text); size+len(page.Data[0])+1 <= mcp.MaxResult {
				t.Errorf("ids of %d: page %d has %d bytes, an item %d", n, pages, size, len(page.Data[0]))
			}
			arguments["cursor"] = page.NextCursor
		}
		slices.Sort(all)
		if len(slices.Compact(all)) < 60 {
			t.Errorf("case %d: %d runs, want at least 60", i, len(slices.Compact(all)))
		}
	}
	// Exactly 40,000 bytes fit, one more does not.
	id := f.run(t, g, f.keys["other"])
	body := func(n int) toolResult {
		_, err := f.pool.Exec(t.Context(), `UPDATE measurement_runs SET model_ids = ARRAY[repeat('x', $2)] WHERE id = $1`, parseRun(t, id), n)
		must(t, err)
		return callTool(t, g, f.keys["other"], "get_run", map[string]any{"run_id": id})
	}
	n := mcp.MaxResult - len(body(0).Content[0].Text)
	if r := body(n); r.IsError || len(r.Content[0].Text) != mcp.MaxResult {
		t.Errorf("a run of %d bytes: %.200s", mcp.MaxResult, r.Content[0].Text)
	}
	if r := body(n + 1); !r.IsError || !strings.Contains(r.Content[0].Text, `"code":"result_too_large","detail":"The result (40001 bytes`) {
		t.Errorf("a run of %d bytes: %.300s", mcp.MaxResult+1, r.Content[0].Text)
	}
}

// TestToolTenancy: no tool returns anything of another account.
func TestToolTenancy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	id := f.run(t, g, f.keys["other"])
	if made := ask(g, f.keys["other"], "POST", "/v1/brands", `{"kind":"own","name":"Theirs","domains":["theirs.example"]}`); made.Code != http.StatusCreated {
		t.Fatal(made.Body)
	}
	const unknown = "run_01k00000000000000000000000"
	for _, tool := range mcp.Tools() {
		if tool.Name == "create_run" {
			continue
		}
		arguments := map[string]any{}
		if tool.Has("run_id") {
			arguments["run_id"] = id
		}
		if tool.Name == "compare_metrics" {
			arguments["baseline_run_id"] = unknown
		}
		theirs := callTool(t, g, f.keys["full"], tool.Name, arguments).Content[0].Text
		if strings.Contains(theirs, "Theirs") || strings.Contains(theirs, f.accounts["golden other"].Text("acct")) {
			t.Errorf("%s returns %s", tool.Name, theirs)
		}
		if !tool.Has("run_id") {
			continue
		}
		if arguments["run_id"] = unknown; tool.Name == "compare_metrics" {
			arguments["baseline_run_id"] = "run_01k00000000000000000000001"
		}
		other := callTool(t, g, f.keys["full"], tool.Name, arguments).Content[0].Text
		neutral := strings.NewReplacer(id, unknown, unknown, unknown, "run_01k00000000000000000000001", unknown)
		if diff := cmp.Diff(withoutVolatile(neutral.Replace(other)), withoutVolatile(neutral.Replace(theirs))); diff != "" {
			t.Errorf("%s differs for a run of another account:\n%s", tool.Name, diff)
		}
	}
}

func withoutVolatile(text string) string {
	text = typeIDs.ReplaceAllStringFunc(text, func(id string) string { prefix, _, _ := strings.Cut(id, "_"); return prefix })
	return times.ReplaceAllString(text, "{time}")
}

// TestToolLog: the log names the tool, and never the arguments.
func TestToolLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var log bytes.Buffer
	g := f.gateway(&log)
	callTool(t, g, f.keys["full"], "list_runs", map[string]any{"country": "secret"})
	line := log.String()
	for _, want := range []string{`"route":"POST /mcp"`, `"tool":"list_runs"`, `"code":"invalid_parameter"`} {
		if !strings.Contains(line, want) {
			t.Errorf("the log has %s, want %s", line, want)
		}
	}
	if strings.Contains(line, "secret") {
		t.Errorf("the log has an argument: %s", line)
	}
}

// TestToolArguments: every optional argument may be null.
func TestToolArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for _, tool := range mcp.Tools() {
		if strings.HasPrefix(tool.Route, "POST") || tool.Name == "compare_metrics" {
			continue
		}
		arguments := make(map[string]any)
		for _, a := range tool.Arguments {
			if arguments[a.Name] = nil; a.Required {
				arguments[a.Name] = "run_01k00000000000000000000000"
			}
		}
		r := callTool(t, g, f.keys["full"], tool.Name, arguments)
		if text := r.Content[0].Text; r.IsError && !strings.Contains(text, "run_not_found") {
			t.Errorf("%s with %v: %s", tool.Name, slices.Collect(maps.Keys(arguments)), text)
		}
	}
}

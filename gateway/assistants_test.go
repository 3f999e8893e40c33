package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"aiv/gateway/mcp"
	"aiv/gateway/reference"
	"aiv/store/storetest"
)

// TestToolsAndRoutes compares the arguments of each tool with the parameters and the body of its route in openapi.json.
// The reference names each tool with its route.
func TestToolsAndRoutes(t *testing.T) {
	d := openAPI(t)
	ofTools := map[string]bool{"list_results answer_chars": true, "query_metrics metrics": true, "compare_metrics metrics": true}
	notOfTools := map[string]bool{"list_runs id": true}
	routes, documents := d.routes(), reference.Documents()
	page := slices.IndexFunc(documents, func(d reference.Document) bool { return d.Path == "/docs.md" })
	for _, tool := range mcp.Tools() {
		line := fmt.Sprintf("- `%s`: `%s`. %s\n", tool.Name, tool.Route, tool.Description)
		if !strings.Contains(string(documents[page].Body), line) {
			t.Errorf("the section Assistants does not have the line %s", line)
		}
		i := slices.IndexFunc(routes, func(o operation) bool { return o.name == tool.Route })
		if i < 0 {
			t.Errorf("%s: openapi.json has no %s", tool.Name, tool.Route)
			continue
		}
		o := &routes[i]
		want := make(map[string]string)
		for _, p := range o.parameters() {
			switch name := p["name"].(string); {
			case name == "id" && p["in"] == "path":
				want["run_id"] = d.argumentOf(p["schema"])
			case p["in"] == "query" && !notOfTools[tool.Name+" "+name]:
				want[name] = d.argumentOf(p["schema"])
			case name == "Idempotency-Key":
				want["idempotency_key"] = d.argumentOf(p["schema"])
			}
		}
		described, _ := o.bodySchema()["properties"].(map[string]any)
		for name, p := range described {
			want[name] = d.argumentOf(p)
		}
		got := make(map[string]string)
		schema, err := decodeJSON(tool.InputSchema)
		must(t, err)
		properties, _ := schema.(map[string]any)["properties"].(map[string]any)
		for name, p := range properties {
			if !ofTools[tool.Name+" "+name] {
				got[name] = schemaDocument(nil).argumentOf(p)
			}
		}
		storetest.Equal(t, want, got, tool.Name, " and ", tool.Route)
	}
}

// argumentOf returns what the schemas of a parameter and of an argument have in common: the type, the words, and the
// bounds.
func (d schemaDocument) argumentOf(schema any) string {
	s := d.resolve(schema)
	a := fmt.Sprint(s["type"], " ", s["enum"], " from ", s["minimum"], " to ", s["maximum"])
	if s["items"] != nil {
		item := d.resolve(s["items"])
		a += fmt.Sprint(" of ", item["type"], " ", item["enum"], ", ", s["minItems"], " to ", s["maxItems"])
	}
	return a
}

// A toolResult is the result of a call.
type toolResult struct {
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	IsError           bool
}

// callTool returns the result of a call.
func callTool(t *testing.T, g *Gateway, key, name string, arguments map[string]any) (r toolResult) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": name, "arguments": arguments}})
	must(t, err)
	response := struct{ Result *toolResult }{&r}
	must(t, json.Unmarshal(ask(g, key, "POST", "/mcp", string(body)).Body.Bytes(), &response))
	if text := r.Content[0].Text; !r.IsError && string(r.StructuredContent) != text || len(text) > mcp.MaxResult {
		t.Fatalf("%s returns the text %s and %s", name, text, r.StructuredContent)
	}
	return r
}

// A listPage is a page of a list.
type listPage[T any] struct {
	Data       []T
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
}

// TestToolSize: a list has as many items as fit into a result, and continues after its last item. What is no list and
// does not fit is refused. The log names the tool, and never the arguments.
func TestToolSize(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var log strings.Builder
	f.log = slog.New(slog.NewJSONHandler(&log, nil))
	g := f.gateway()
	key := f.keys["other"]
	large := f.run(t, g, key)
	f.exec(t, `UPDATE measurement_runs SET model_ids = ARRAY[repeat('x', $2)] WHERE id = $1`,
		parseRun(t, large), mcp.MaxResult)
	for tool, start := range map[string]string{"get_run": "The result (", "cancel_run": "The call was carried out: do not repeat it. "} {
		r := callTool(t, g, key, tool, map[string]any{"run_id": large})
		if !r.IsError || !strings.HasPrefix(r.Content[0].Text, `{"code":"result_too_large","detail":"`+start) {
			t.Errorf("what is too large and no list: %s returned %.200s", tool, r.Content[0].Text)
		}
	}
	if !strings.Contains(log.String(), `"tool":"get_run"`) || strings.Contains(log.String(), large) {
		t.Errorf("the log has %s, want the tool and no argument", &log)
	}
	const runs = 60
	for range runs - 1 {
		f.run(t, g, key)
	}
	f.exec(t, `UPDATE measurement_runs SET model_ids = ARRAY[repeat('é', hashtext(id::text) & 2047)]
		WHERE account_id = $1`, f.accounts["golden other"])
	found := make(map[string]bool)
	arguments := map[string]any{"limit": 200}
	for page, size := (listPage[json.RawMessage]{HasMore: true}), mcp.MaxResult; page.HasMore; {
		result := callTool(t, g, key, "list_runs", arguments).StructuredContent
		must(t, json.Unmarshal(result, &page))
		if first := len(page.Data[0]); size+first+1 <= mcp.MaxResult {
			t.Errorf("a page of %d bytes does not have the next item, of %d bytes", size, first)
		}
		for _, item := range page.Data {
			var run struct{ ID string }
			must(t, json.Unmarshal(item, &run))
			found[run.ID] = true
		}
		size, arguments["cursor"] = len(result), page.NextCursor
	}
	storetest.Equal(t, runs, len(found), "runs that were found")
}

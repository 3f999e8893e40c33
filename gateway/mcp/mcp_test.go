package mcp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"aiv/gateway/problem"
	"aiv/store/strictjson"
)

var limits = strictjson.Limits{Depth: 16, Values: 10_000}

// FuzzAnswer: every message gets a valid response of JSON-RPC, or none.
func FuzzAnswer(f *testing.F) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `[]`, `{}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_runs","arguments":{"status":["queued",1],"limit":null,"x":1},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_run","arguments":{"model_ids":[[],{}],"repetitions":1e3}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_runs","arguments":{"limit":[1]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":""}`, `{"jsonrpc":"2.0","method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
	} {
		f.Add(body, "2026-07-28", "tools/list", "")
		f.Add(body, "", "", "=?base64?eA==?=")
	}
	s := NewServer("v1")
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		v, err := strictjson.Parse(body, limits)
		if err != nil {
			return
		}
		h := http.Header{}
		for n, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
			if value != "" {
				h[n] = []string{value}
			}
		}
		r := s.Respond(&v, &Client{Header: h, Offers: func(*Tool) bool { return true }, Call: func(tool *Tool, a Arguments) Result {
			if len(a.Faults) > 0 {
				return Result{Problem: WrongArguments(tool, a.Faults)}
			}
			a.TakeWords("metrics")
			a.Parameters(tool)
			return Result{Body: []byte(`{}`)}
		}})
		if !slices.Contains([]int{200, 202, 400, 404}, r.Status) || (r.Body == nil) != (r.Status == 202) {
			t.Fatalf("status %d with the body %s", r.Status, r.Body)
		}
		if r.Body == nil {
			return
		}
		var response map[string]json.RawMessage
		if err := json.Unmarshal(r.Body, &response); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
		if string(response["jsonrpc"]) != `"2.0"` || (response["result"] == nil) == (response["error"] == nil) {
			t.Errorf("%s", r.Body)
		}
	})
}

// TestProblemText: a problem is small, however many faults it has, and counts those that are left out.
func TestProblemText(t *testing.T) {
	p := &problem.Problem{Code: "x", Detail: "Retry after the time in Retry-After."}
	for range 30 {
		p.Errors.AddParameter(strings.Repeat("é/~", 100), strings.Repeat("long ", 100))
		p.Errors.Add("#/arguments/model_ids/1", strings.Repeat("long ", 100))
	}
	p.Header = problem.Retry(7)
	text := Result{Problem: p, RequestID: "req_1"}.problem()
	var d struct {
		Errors     []fault
		LeftOut    int `json:"errors_left_out"`
		RetryAfter int `json:"retry_after_seconds"`
	}
	if err := json.Unmarshal(text, &d); err != nil || len(text) >= maxProblem || len(d.Errors)+d.LeftOut != len(p.Errors) ||
		d.RetryAfter != 7 || strings.Contains(string(text), "Retry-After") {
		t.Errorf("%d bytes, %d errors, %d left out of %d, retry after %d: %v", len(text), len(d.Errors), d.LeftOut, len(p.Errors), d.RetryAfter, err)
	}
}

// TestToolsAreSmall: the list of tools and the instructions leave room in the context of an assistant. The types of
// arguments are those that are read.
func TestToolsAreSmall(t *testing.T) {
	message, err := strictjson.Parse(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, limits)
	list := NewServer("v1").Respond(&message, &Client{Offers: func(*Tool) bool { return true }}).Body
	if err != nil || strings.Count(string(list), `"inputSchema"`) != len(tools) || len(list) > 12_000 || len(instructions) >= 2000 {
		t.Errorf("the list of %d tools has %d bytes, the instructions have %d, %v:\n%s", len(tools), len(list), len(instructions), err, list)
	}
	for _, tool := range tools {
		for _, a := range tool.Arguments {
			if _, ok := kinds[a.Type]; !ok || a.Type == "array" && (a.Items == nil || a.Items.Type != "string") {
				t.Errorf("%s: the argument %s has a type that is not supported", tool.Name, a.Name)
			}
		}
	}
}

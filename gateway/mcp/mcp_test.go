package mcp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	p := &problem.Problem{Code: "x", Detail: "d"}
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
	if err := json.Unmarshal(text, &d); err != nil || len(text) >= maxProblem || len(d.Errors)+d.LeftOut != len(p.Errors) || d.RetryAfter != 7 {
		t.Errorf("%d bytes, %d errors, %d left out of %d, retry after %d: %v", len(text), len(d.Errors), d.LeftOut, len(p.Errors), d.RetryAfter, err)
	}
}

// TestArgumentsBecomeParameters: arguments become parameters in the order of the tool, with defaults, and without those that were
// taken.
func TestArgumentsBecomeParameters(t *testing.T) {
	tool := find("list_results")
	a := tool.read(parse(t, `{"cursor":"c","status":["queued","failed"],"mentioned":true,"run_id":"r","answer_chars":5,`+
		`"brand_id":null}`))
	if id, chars := a.TakeText("run_id"), a.TakeInteger(tool, "answer_chars"); id != "r" || chars != 5 || len(a.Faults) > 0 {
		t.Errorf("got %q, %d, %v", id, chars, a.Faults)
	}
	if diff := cmp.Diff("status=queued%2Cfailed&mentioned=true&limit=10&cursor=c", a.Parameters(tool).Encode()); diff != "" {
		t.Error(diff)
	}
}

// TestArrayForAScalar: an array where a tool takes a scalar is one fault, whatever is in it.
func TestArrayForAScalar(t *testing.T) {
	for _, tool := range tools {
		for _, arg := range tool.Arguments {
			scalar := &arg.Schema
			at, value := At+"/"+arg.Name, `[[1]]`
			if arg.Type == "array" {
				scalar, at, value = arg.Items, at+"/0", `[[[1]]]`
			}
			faults := tool.read(parse(t, `{"`+arg.Name+`":`+value+`}`)).Faults
			faults = slices.DeleteFunc(faults, func(f problem.Fault) bool { return f.Detail == "is required" })
			want := problem.Faults{{Pointer: at, Detail: "must be " + kinds[scalar.Type].name + ", not an array"}}
			if diff := cmp.Diff(want, faults); diff != "" {
				t.Errorf("%s %s %s: (-want +got)\n%s", tool.Name, arg.Name, value, diff)
			}
		}
	}
}

// respond returns the response to a message of a client that may use all tools.
func respond(t *testing.T, body string, header http.Header) Response {
	t.Helper()
	return NewServer("v1").Respond(parse(t, body), &Client{Header: header, Offers: func(*Tool) bool { return true }})
}

func parse(t *testing.T, text string) *strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse(text, limits)
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

// TestEmptyMethod: an empty method is a method that the server does not have.
func TestEmptyMethod(t *testing.T) {
	modern := `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, c := range []struct {
		body, version string
		status        int
		contains      string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":""}`, "2025-11-25", http.StatusOK, `"code":-32601`},
		{`{"jsonrpc":"2.0","id":1,"method":""` + modern, "2026-07-28", http.StatusNotFound, `"code":-32601`},
		{`{"jsonrpc":"2.0","method":""}`, "2025-11-25", http.StatusAccepted, ""},
	} {
		r := respond(t, c.body, http.Header{"Mcp-Protocol-Version": {c.version}, "Mcp-Method": {""}})
		if r.Status != c.status || !strings.Contains(string(r.Body), c.contains) || (len(r.Body) > 0) != (c.contains != "") {
			t.Errorf("%s: status %d, %s", c.body, r.Status, r.Body)
		}
	}
}

// TestToolsAreSmall: the list of tools and the instructions leave room in the context of an assistant, and a tool has
// what clients need, and no more.
func TestToolsAreSmall(t *testing.T) {
	r := respond(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
	var list struct {
		Result struct{ Tools []map[string]json.RawMessage }
	}
	if err := json.Unmarshal(r.Body, &list); err != nil || len(r.Body) > 12_000 || len(list.Result.Tools) != len(tools) {
		t.Errorf("the list has %d tools in %d bytes: %v", len(list.Result.Tools), len(r.Body), err)
	}
	if n := len(instructions); n == 0 || n >= 2000 {
		t.Errorf("the instructions have %d bytes", n)
	}
	for i, listed := range list.Result.Tools {
		if len(listed) != 5 {
			t.Errorf("%s is listed as %s", tools[i].Name, tools[i].listed)
		}
		for _, a := range tools[i].Arguments {
			if _, ok := kinds[a.Type]; !ok || a.Type == "array" && (a.Items == nil || a.Items.Type != "string") {
				t.Errorf("%s: the argument %s has a type that is not supported", tools[i].Name, a.Name)
			}
		}
	}
}

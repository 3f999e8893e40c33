package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"aiv/gateway/mcp"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/telemetry"
	"aiv/store"
)

// assistantPath is the path of the tools for assistants, below Base.
const assistantPath = "/mcp"

// checkAssistant checks what needs no key: the origin and the method.
func (x *exchange) checkAssistant(r *http.Request) error {
	if r.Method == http.MethodPost {
		// This is set first, so that rejected messages have the route in the log and the metrics too.
		x.routeIndex = assistantRoute
	}
	if !originAllowed(r) {
		return &problem.Problem{Code: problem.OriginNotAllowed, Detail: "No web page of another origin may use the tools."}
	}
	if r.Method != http.MethodPost {
		return problem.NotAllowed(http.MethodPost, Base+assistantPath+" takes messages by POST only.")
	}
	return nil
}

// assist answers a message of an assistant.
func (g *Gateway) assist(x *exchange, r *http.Request) error {
	if err := request.ReadParameters(r.URL.RawQuery).None(); err != nil {
		return err
	}
	// JSON-RPC has its own error for a body that is not JSON. Other faults of the request are problem documents.
	v, err := readJSON(x, r)
	if p, ok := errors.AsType[*problem.Problem](err); err != nil && !(ok && p.Code == problem.InvalidJSON) {
		return err
	} else if err != nil {
		x.write(http.StatusBadRequest, "application/json", mcp.NotJSON(p.Detail))
		return nil
	}
	response := g.assistants.Respond(&v, &mcp.Client{
		Header: r.Header, Offers: x.mayCall,
		Call: func(t *mcp.Tool, a mcp.Arguments) mcp.Result { return g.callTool(x, r, t, a) },
	})
	// The message was a notification or a response, which has no answer.
	if response.Body == nil {
		x.set("Cache-Control", "no-store")
		x.WriteHeader(response.Status)
		return nil
	}
	x.write(response.Status, "application/json", response.Body)
	return nil
}

// routesOfTools are the indexes of the routes that the tools call, by the names of the tools.
var routesOfTools = func() map[string]int {
	indexes := make(map[string]int)
	for _, t := range mcp.Tools() {
		i := slices.Index(routeNames, t.Route)
		// A fault of tools.json ends the program at its start.
		if i < 0 {
			panic("the tool " + t.Name + " has no route " + t.Route)
		}
		indexes[t.Name] = i
	}
	return indexes
}()

// mayCall reports whether the credential has a scope of the tool's route.
func (x *exchange) mayCall(t *mcp.Tool) bool {
	scopes := routes[routesOfTools[t.Name]].scopes
	return len(scopes) == 0 || x.credential().HasScope(scopes...)
}

// callTool executes a call: it sends a request of the tool's route through the table of routes, with the admission of
// the message. A message and its call count once against the limit.
func (g *Gateway) callTool(x *exchange, r *http.Request, t *mcp.Tool, a mcp.Arguments) mcp.Result {
	x.toolName = t.Name
	// The route writes into call instead of to the client.
	call := &toolCall{tool: t, arguments: a, answerChars: -1}
	inner := &exchange{
		requestID: x.requestID, admission: x.admission, bodies: x.bodies, routeIndex: noRoute, tool: call, ResponseWriter: call,
	}
	routed := inner.readArguments(t, &a)
	if len(a.Faults) > 0 {
		call.problem = mcp.WrongArguments(t, a.Faults)
	} else {
		g.dispatchCall(inner, routed)
	}
	// The message is logged as one request, with the round trips, the error and the code of its call.
	x.roundTrips.Add(inner.roundTrips.Load())
	x.err = inner.err
	// Write has not kept all of the body.
	if call.problem == nil && call.size > mcp.MaxResult {
		call.problem = mcp.TooLarge(t, &call.arguments, call.size, max(call.rows, 1), "")
	}
	if call.problem != nil {
		x.code = call.problem.Code
	}
	g.toolCalls.count(t.Name, call.problem == nil)
	return mcp.Result{Body: call.body, Problem: call.problem, RequestID: x.requestID}
}

// readArguments turns arguments into a logical request, and returns the request that carries it: none of the headers of
// the message apply to the route.
func (x *exchange) readArguments(t *mcp.Tool, a *mcp.Arguments) *http.Request {
	route := &routes[routesOfTools[t.Name]]
	x.logicalRequest = logicalRequest{method: route.method, path: route.path, plain: true}
	if strings.Contains(route.path, "{id}") {
		id := a.TakeText("run_id")
		if _, err := store.ParseID("run", id); err != nil {
			id = "malformed" // the id of no run, which is reported after the scope
		}
		x.path = strings.Replace(route.path, "{id}", id, 1)
	}
	if chars := "answer_chars"; t.Has(chars) {
		x.tool.answerChars = a.TakeInteger(t, chars)
	}
	// nil for a tool without this argument.
	x.tool.metrics = a.TakeWords("metrics")
	header := http.Header{}
	if route.method == http.MethodGet {
		x.params = a.Parameters(t)
	} else {
		if key := a.Take("idempotency_key"); key != nil {
			header["Idempotency-Key"] = []string{key.Text}
		}
		x.envelope = a.Body()
	}
	return &http.Request{Header: header}
}

// dispatchCall is dispatch for a call. A handler that panics is an internal error of the call. ServeHTTP would respond
// to the whole message with a problem, which is not JSON-RPC.
func (g *Gateway) dispatchCall(x *exchange, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			x.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			x.problem(problem.Of(x.err))
		}
	}()
	g.dispatch(x, r)
}

// A toolCall is the response to a call of a tool, and what the call asks of it besides the parameters of the route.
type toolCall struct {
	tool        *mcp.Tool
	arguments   mcp.Arguments // all that were given
	answerChars int           // characters of the texts of answers; -1: all
	metrics     []string      // the cells of rows; nil: all

	header  http.Header
	body    []byte
	size    int // of the body; one that is too large is not kept
	rows    int // of the document, if it has rows and is not a list
	problem *problem.Problem
}

// Header implements http.ResponseWriter. No header is part of a result.
func (c *toolCall) Header() http.Header {
	if c.header == nil {
		c.header = make(http.Header)
	}
	return c.header
}

// WriteHeader implements http.ResponseWriter.
func (c *toolCall) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (c *toolCall) Write(b []byte) (int, error) {
	if c.size += len(b); c.size <= mcp.MaxResult {
		c.body = append(c.body, b...)
	}
	return len(b), nil
}

// answerChars returns how many characters of the texts of answers a tool shows, or -1.
func (x *exchange) answerChars() int {
	if x.tool == nil {
		return -1
	}
	return x.tool.answerChars
}

// fit returns the page of n items. A tool's page that exceeds the bound has as many items as fit.
func (x *exchange) fit(n int, pageOf func(n int) page) (page, error) {
	p := pageOf(n)
	if x.tool == nil || len(p.body) <= mcp.MaxResult {
		return p, nil
	}
	// The size of a page grows with its items, so this is the largest number that fits.
	n = sort.Search(n, func(i int) bool { return len(pageOf(i+1).body) > mcp.MaxResult })
	if n == 0 {
		first := pageOf(1)
		return page{}, mcp.TooLarge(x.tool.tool, &x.tool.arguments, len(first.body), 1, first.cursor)
	}
	return pageOf(n), nil
}

// shows reports whether the rows of the response have the cell. Without a tool, c is nil and rows have all cells.
func (c *toolCall) shows(cell string) bool {
	return c == nil || c.metrics == nil || slices.Contains(c.metrics, cell)
}

// setRows records the rows of a document.
func (c *toolCall) setRows(n int) {
	if c != nil {
		c.rows = n
	}
}

// toolCounts counts calls of tools by the name of the tool and by outcome. The map is not changed after New, so it
// needs no lock.
type toolCounts map[string]*[2]atomic.Uint64

// outcomes are the outcomes of calls: whether the result is a problem.
var outcomes = [2]string{"ok", "error"}

func newToolCounts() toolCounts {
	c := make(toolCounts)
	for _, t := range mcp.Tools() {
		c[t.Name] = new([2]atomic.Uint64)
	}
	return c
}

func (c toolCounts) count(tool string, ok bool) {
	if ok {
		c[tool][0].Add(1)
	} else {
		c[tool][1].Add(1)
	}
}

// WriteToolCalls adds the counts of tool calls to a page of metrics.
func (g *Gateway) WriteToolCalls(_ context.Context, e *telemetry.Exposition) {
	e.Family("aiv_mcp_calls_total", "counter", "Calls of tools by assistants, by tool and outcome.")
	for _, t := range mcp.Tools() {
		for i, outcome := range outcomes {
			e.Sample(float64(g.toolCalls[t.Name][i].Load()), "tool", t.Name, "outcome", outcome)
		}
	}
}

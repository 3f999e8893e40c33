package mcp

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"aiv/gateway/wire"
)

// A Tool is an entry of tools.json. A new tool is its entry there: the gateway finds the route by its name.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations"`
	Route       string          `json:"route,omitempty"` // such as "GET /v1/runs/{id}"; clients do not see it

	Arguments []Argument `json:"-"` // from InputSchema

	listed []byte // the tool as tools/list returns it
}

// An Argument describes an argument of a tool by the part of JSON Schema that tools.json uses.
type Argument struct {
	Name     string
	Required bool
	Schema
}

// A Schema is the type of an argument.
type Schema struct {
	Type    string   `json:"type"`
	Enum    []string `json:"enum"`    // nil: any value of the type
	Minimum *int64   `json:"minimum"` // nil, as Maximum and Default: none
	Maximum *int64   `json:"maximum"`
	Default *int64   `json:"default"`
	Items   *Schema  `json:"items"` // of an array; nil otherwise
}

// toolsFile has the tools in the order in which they are listed.
//
//go:embed tools.json
var toolsFile []byte

var tools = readTools()

// Tools returns the tools in the order in which they are listed.
func Tools() []*Tool { return slices.Clone(tools) }

// readTools reads tools.json. It panics if the embedded file is invalid, which the tests exclude.
func readTools() (all []*Tool) {
	if err := json.Unmarshal(toolsFile, &all); err != nil {
		panic(fmt.Errorf("tools.json: %w", err))
	}
	for _, t := range all {
		listed := *t
		listed.Route = ""
		var b bytes.Buffer
		if err := json.Compact(&b, wire.Encode(listed)); err != nil {
			panic(err)
		}
		t.listed = b.Bytes()
		t.Arguments = readArguments(t.InputSchema)
	}
	return all
}

// readArguments returns the arguments that a schema describes, in its order.
func readArguments(inputSchema []byte) (all []Argument) {
	var schema struct {
		Properties json.RawMessage
		Required   []string
	}
	var properties map[string]Schema
	if err := json.Unmarshal(inputSchema, &schema); err != nil {
		panic(err)
	}
	if schema.Properties == nil {
		return nil
	}
	if err := json.Unmarshal(schema.Properties, &properties); err != nil {
		panic(err)
	}
	// The map has no order, so the names are read again, one by one. The first token is the opening brace.
	d := json.NewDecoder(bytes.NewReader(schema.Properties))
	for d.Token(); d.More(); {
		name, _ := d.Token()
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			panic(err)
		}
		n := name.(string)
		all = append(all, Argument{n, slices.Contains(schema.Required, n), properties[n]})
	}
	return all
}

// find returns the tool with this name, or nil.
func find(name string) *Tool {
	if i := slices.IndexFunc(tools, func(t *Tool) bool { return t.Name == name }); i >= 0 {
		return tools[i]
	}
	return nil
}

// Has reports whether the tool has an argument.
func (t *Tool) Has(name string) bool { return t.argument(name) != nil }

// argument returns the argument with this name, or nil.
func (t *Tool) argument(name string) *Argument {
	if i := slices.IndexFunc(t.Arguments, func(a Argument) bool { return a.Name == name }); i >= 0 {
		return &t.Arguments[i]
	}
	return nil
}

// appendTools appends the member tools with the tools that are offered.
func appendTools(b []byte, offered func(*Tool) bool) []byte {
	b = append(wire.Member(b, "tools"), '[')
	for _, t := range tools {
		if offered(t) {
			b = append(wire.Item(b), t.listed...)
		}
	}
	return append(b, ']')
}

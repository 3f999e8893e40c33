package mcp

import (
	"net/http"
	"strings"

	"aiv/gateway/wire"
	"aiv/store/strictjson"
)

// A message is a request, a notification (a request without an id) or a response of JSON-RPC 2.0.
type message struct {
	id         []byte // JSON; nil: none
	isResponse bool
	method     string            // may be ""
	params     *strictjson.Value // nil: none
}

// readMessage reads a message. With an error, it returns the id if that is valid.
func readMessage(v *strictjson.Value) (m message, err *Error) {
	if v.Kind != strictjson.KindObject {
		return m, invalidMessage("A message must be one object, not " + v.Describe() + "; batches are not supported.")
	}
	// The id is read first, so that the response to a faulty message has it.
	if id := v.Member("id"); id != nil {
		switch {
		case id.Kind == strictjson.KindString:
			m.id = strictjson.AppendString(nil, id.Text)
		// The digits are returned as they were sent: they may exceed any integer type.
		case id.Kind == strictjson.KindNumber && !strings.ContainsAny(id.Text, ".eE"):
			m.id = []byte(id.Text)
		default:
			return m, invalidMessage("The id must be a string or an integer.")
		}
	}
	if version := v.Member("jsonrpc"); version == nil || version.Kind != strictjson.KindString || version.Text != "2.0" {
		return m, invalidMessage(`The member jsonrpc must be "2.0".`)
	}
	method := v.Member("method")
	switch {
	case method == nil && (v.Member("result") != nil || v.Member("error") != nil):
		m.isResponse = true
		return m, nil
	case method == nil || method.Kind != strictjson.KindString:
		return m, invalidMessage("The member method must be a string.")
	}
	m.method, m.params = method.Text, v.Member("params")
	return m, nil
}

// checkParams requires params to be an object, if there are any.
func (m *message) checkParams() *Error {
	if m.params != nil && m.params.Kind != strictjson.KindObject {
		return wrongParams("The params must be an object, not " + m.params.Describe() + ".")
	}
	return nil
}

// param returns a member of params, or nil. params may be of any type: Member returns nil unless it is an object.
func (m *message) param(name string) *strictjson.Value {
	if m.params == nil {
		return nil
	}
	return m.params.Member(name)
}

// The codes of errors of JSON-RPC 2.0 and of the protocol.
const (
	parseError         = -32700
	invalidRequest     = -32600
	methodNotFound     = -32601
	invalidParams      = -32602
	headerMismatch     = -32020 // this code and the next are MCP's
	unsupportedVersion = -32022
)

// An Error is the error of a message. Its text is one sentence for a developer.
type Error struct {
	Status  int // of the HTTP response
	Code    int
	Message string
	data    []byte // JSON; nil: none
}

func invalidMessage(text string) *Error {
	return &Error{http.StatusBadRequest, invalidRequest, text, nil}
}

func wrongParams(text string) *Error { return &Error{http.StatusBadRequest, invalidParams, text, nil} }

func wrongHeader(text string) *Error { return &Error{http.StatusBadRequest, headerMismatch, text, nil} }

// NotJSON returns the response to a body that is not strict JSON. Its status is 400.
func NotJSON(text string) []byte {
	return (&Error{http.StatusBadRequest, parseError, text, nil}).response(nil).Body
}

// response returns the response to a message with this id, or with none if it could not be read.
func (e *Error) response(id []byte) Response {
	b := append(begin(nil, id), `,"error":{`...)
	b = wire.Text(wire.Int(b, "code", e.Code), "message", e.Message)
	if e.data != nil {
		b = append(wire.Member(b, "data"), e.data...)
	}
	return Response{e.Status, append(b, "}}"...)}
}

// begin appends the first members of a response.
func begin(b, id []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	if id != nil {
		b = append(append(b, `,"id":`...), id...)
	}
	return b
}

// shorten cuts a name that a client sent to 64 bytes, so that responses do not grow with requests.
func shorten(name string) string {
	if len(name) <= 64 {
		return name
	}
	return strings.ToValidUTF8(name[:64], "") + "…"
}

// Package mcp speaks the [Model Context Protocol] for package gateway: it reads messages, chooses the revision of the
// protocol, and answers with the tools of tools.json. It holds no state between two messages, and knows no route: the
// gateway calls the tools. It owns no table.
//
// Two eras of the protocol differ in how a client names the revision. A modern client names it in each request, in a
// header and in params._meta; a legacy client begins with the method initialize.
//
// [Model Context Protocol]: https://modelcontextprotocol.io/specification/2026-07-28
package mcp

import (
	_ "embed"
	"net/http"
	"strings"

	"aiv/gateway/wire"
	"aiv/store/strictjson"
)

// A Server answers messages.
type Server struct {
	info []byte // JSON of serverInfo
}

// NewServer returns a server that reports the given version of the program.
func NewServer(version string) *Server {
	b := wire.Text([]byte{'{'}, "name", "aiv")
	b = wire.Text(b, "title", "AI visibility")
	return &Server{info: append(wire.Text(b, "version", version), '}')}
}

// A Client is the sender of a message: what it may see, and how its calls are executed.
type Client struct {
	Header http.Header
	Offers func(*Tool) bool              // whether the tool is listed
	Call   func(*Tool, Arguments) Result // executes a call whose arguments have the right types
}

// A Response is what is sent to a client. It has no body if the message needs none.
type Response struct {
	Status int
	Body   []byte
}

// Respond returns the response to a message.
func (s *Server) Respond(v *strictjson.Value, c *Client) Response {
	m, err := readMessage(v)
	if err != nil {
		return err.response(m.id)
	}
	if m.isResponse || m.id == nil {
		return Response{Status: http.StatusAccepted} // nothing is executed for a response or a notification
	}
	// Each request says by which revision it is to be read: there are no sessions.
	modern, err := m.isModern(c.Header)
	if err != nil {
		return err.response(m.id)
	}
	result, err := s.result(m, modern, c)
	if err != nil {
		if !modern {
			err.Status = http.StatusOK // legacy clients read errors from responses of status 2xx only
		}
		return err.response(m.id)
	}
	if modern {
		result = wire.Text(result, "resultType", "complete")
		result = append(append(wire.Member(result, "_meta"), `{"io.modelcontextprotocol/serverInfo":`...), s.info...)
		result = append(result, '}')
	}
	// result has its opening brace; its closing brace and the brace of the response follow.
	b := append(begin(make([]byte, 0, len(result)+128), m.id), `,"result":`...)
	return Response{http.StatusOK, append(append(b, result...), "}}"...)}
}

// result executes a method. It returns the members of the result, with the opening brace.
func (s *Server) result(m message, modern bool, c *Client) ([]byte, *Error) {
	b := []byte{'{'}
	switch {
	case m.method == "server/discover" && modern:
		if err := m.checkParams(); err != nil {
			return nil, err
		}
		b = wire.Texts(b, "supportedVersions", versions)
		b = append(wire.Member(b, "capabilities"), `{"tools":{}}`...)
		return appendCaching(wire.Text(b, "instructions", instructions)), nil
	case m.method == "initialize" && !modern:
		// A client that does not support the version in the result disconnects.
		asked := m.param("protocolVersion")
		if asked == nil || asked.Kind != strictjson.KindString {
			return nil, wrongParams("The params of initialize must have the string protocolVersion.")
		}
		b = wire.Text(b, "protocolVersion", legacyVersion(asked.Text))
		b = append(wire.Member(b, "capabilities"), `{"tools":{}}`...)
		b = append(wire.Member(b, "serverInfo"), s.info...)
		return wire.Text(b, "instructions", instructions), nil
	case m.method == "ping" && !modern:
		return b, m.checkParams()
	case m.method == "tools/list":
		if err := m.checkParams(); err != nil {
			return nil, err
		}
		// A cursor is never given out, so none is valid.
		if cursor := m.param("cursor"); cursor != nil && cursor.Kind != strictjson.KindNull {
			return nil, wrongParams("The list of tools has one page; leave cursor out.")
		}
		b = appendTools(b, c.Offers)
		if modern {
			b = appendCaching(b)
		}
		return b, nil
	case m.method == "tools/call":
		return m.call(c)
	}
	return nil, &Error{http.StatusNotFound, methodNotFound, "The revision of this message has no method " + shorten(m.method) + ".", nil}
}

// appendCaching appends how long a client may keep a result, in milliseconds. The list of tools depends on the key.
func appendCaching(b []byte) []byte {
	return wire.Text(wire.Int(b, "ttlMs", 300_000), "cacheScope", "private")
}

// call executes the method tools/call. The faults of the arguments become part of the result; only an unknown tool and
// wrong params are protocol errors.
func (m *message) call(c *Client) ([]byte, *Error) {
	name, given := m.param("name"), m.param("arguments")
	if name == nil || name.Kind != strictjson.KindString {
		return nil, wrongParams("The params of tools/call must have the string name.")
	}
	t := find(name.Text)
	if t == nil {
		return nil, wrongParams("There is no tool " + shorten(name.Text) + ".")
	}
	// Models also call tools without arguments, or with null.
	if given == nil || given.Kind == strictjson.KindNull {
		given = &strictjson.Value{Kind: strictjson.KindObject}
	}
	if given.Kind != strictjson.KindObject {
		return nil, wrongParams("The arguments of a tool must be an object, not " + given.Describe() + ".")
	}
	return c.Call(t, t.read(given)).append([]byte{'{'}), nil
}

// instructions tell a model how to use the tools.
//
//go:embed instructions.txt
var instructionsFile string

var instructions = strings.TrimSpace(instructionsFile)

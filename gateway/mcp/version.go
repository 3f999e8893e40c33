package mcp

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"aiv/gateway/wire"
	"aiv/store/strictjson"
)

// versions are the revisions that are served, newest first. The first one is the modern one. The others are legacy
// revisions, which clients negotiate by initialize.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// legacyVersion returns the revision for a legacy client that asks for one: that one if it is served.
func legacyVersion(asked string) string {
	if legacy := versions[1:]; slices.Contains(legacy, asked) {
		return asked
	}
	return versions[1]
}

// isModern reports whether a request belongs to the modern era. It checks the headers that the modern era requires; the
// legacy era reads none of them.
func (m *message) isModern(h http.Header) (bool, *Error) {
	// A modern request names its version in params._meta and in a header. A legacy request may have the header.
	header := values(h, "Mcp-Protocol-Version")
	version, named := m.meta("io.modelcontextprotocol/protocolVersion", strictjson.KindString)
	switch {
	case !named && (len(header) == 0 || len(header) == 1 && slices.Contains(versions[1:], header[0])):
		return false, nil
	// The header makes the request modern, but _meta lacks the version.
	case !named && len(header) == 1 && header[0] == versions[0]:
		return false, wrongParams("The params must have _meta with io.modelcontextprotocol/protocolVersion.")
	case !named:
		return false, unsupported(strings.Join(header, ", "))
	// From here on the request is modern.
	case len(header) != 1 || header[0] != version.Text:
		return false, wrongHeader("The header MCP-Protocol-Version must be sent once, with the version in _meta.")
	case version.Text != versions[0]:
		return false, unsupported(version.Text)
	}
	if _, ok := m.meta("io.modelcontextprotocol/clientCapabilities", strictjson.KindObject); !ok {
		return false, wrongParams("The params must have _meta with io.modelcontextprotocol/clientCapabilities, an object.")
	}
	if method := values(h, "Mcp-Method"); len(method) != 1 || method[0] != m.method {
		return false, wrongHeader("The header Mcp-Method must be sent once, with the method of the message.")
	}
	return true, m.checkName(h)
}

// meta returns a member of params._meta, and whether it has the kind.
func (m *message) meta(name string, kind strictjson.Kind) (v *strictjson.Value, ok bool) {
	if all := m.param("_meta"); all != nil {
		v = all.Member(name)
	}
	return v, v != nil && v.Kind == kind
}

// named is the member of params that Mcp-Name repeats, by method.
var named = map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

// checkName checks the header Mcp-Name.
func (m *message) checkName(h http.Header) *Error {
	member, ok := named[m.method]
	if !ok {
		return nil
	}
	sent := values(h, "Mcp-Name")
	if len(sent) == 1 {
		name, ok := decodeHeader(sent[0])
		if want := m.param(member); ok && want != nil && want.Kind == strictjson.KindString && want.Text == name {
			return nil
		}
	}
	return wrongHeader("The header Mcp-Name must be sent once, with params." + member + ".")
}

// decodeHeader decodes a value that has the form =?base64?…?=, in which clients send what is not visible ASCII.
func decodeHeader(value string) (text string, ok bool) {
	encoded, begins := strings.CutPrefix(value, "=?base64?")
	encoded, ends := strings.CutSuffix(encoded, "?=")
	if !begins || !ends {
		return value, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(b), err == nil && utf8.Valid(b)
}

// values returns the values of a header without the blanks around them.
func values(h http.Header, name string) (all []string) {
	for _, v := range h[name] {
		all = append(all, strings.Trim(v, " \t"))
	}
	return all
}

// unsupported reports a version that is not served.
func unsupported(requested string) *Error {
	requested = strings.ToValidUTF8(shorten(requested), "\uFFFD")
	data := wire.Text(wire.Texts([]byte{'{'}, "supported", versions), "requested", requested)
	message := "The version " + requested + " is not supported."
	return &Error{http.StatusBadRequest, unsupportedVersion, message, append(data, '}')}
}

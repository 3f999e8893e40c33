package telemetry

import (
	"net/http"
	"strings"
)

// Trace identifies a request in its client's distributed trace. The log line contains it.
type Trace struct{ ID, Parent string }

// ReadTrace reads the traceparent header [W3C Trace Context]: version, trace id, parent id and flags, in hexadecimal.
// Later versions may append more. An invalid header is ignored, as the specification requires.
//
// [W3C Trace Context]: https://www.w3.org/TR/trace-context/#traceparent-header
func ReadTrace(h http.Header) (t Trace) {
	sent := h["Traceparent"]
	if len(sent) != 1 {
		return t
	}
	p := sent[0]
	// The bytes at 2, 35 and 52 are the hyphens of this example.
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(p) < length || p[2] != '-' || p[35] != '-' || p[52] != '-' || !isHex(p[:2]) || !isHex(p[53:55]) || p[:2] == "ff" ||
		len(p) > length && (p[:2] == "00" || p[length] != '-') {
		return t
	}
	// The specification also forbids ids of zeros only.
	id, parent := p[3:35], p[36:52]
	if !isHex(id) || !isHex(parent) || strings.Trim(id, "0") == "" || strings.Trim(parent, "0") == "" {
		return t
	}
	return Trace{id, parent}
}

// isHex reports whether a text has only hexadecimal digits, in lower case as the specification requires.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

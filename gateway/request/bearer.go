package request

import (
	"net/http"
	"strings"
)

// Bearer returns the bearer token of a request [RFC 6750, 2.1], or "" if it has none. It returns "" and false if the
// header is repeated. A token in the query string is never read: URLs end up in logs.
func Bearer(h http.Header) (token string, ok bool) {
	sent := h["Authorization"]
	if len(sent) != 1 {
		return "", len(sent) == 0
	}
	scheme, token, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimLeft(token, " "), true
}

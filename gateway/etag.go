package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// unchanged sets the ETag. It responds with 304, and reports true, if the client has this representation.
func (x *exchange) unchanged(r *http.Request, tag string) bool {
	x.set("ETag", tag)
	for _, line := range r.Header["If-None-Match"] {
		for candidate := range strings.SplitSeq(line, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/") // the comparison is weak [RFC 9110, 13.1.2]
			if candidate == tag || candidate == "*" {
				x.WriteHeader(http.StatusNotModified)
				return true
			}
		}
	}
	return false
}

// tagOf returns a strong entity tag of a body.
func tagOf(body []byte) string {
	digest := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(digest[:12]) + `"`
}

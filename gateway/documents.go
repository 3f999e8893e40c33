package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"

	"aiv/gateway/problem"
	"aiv/gateway/reference"
	"aiv/gateway/request"
)

// A document is a file of the reference. It requires no key and is not rate-limited. The log and the metrics do not
// count it as a route.
type document struct {
	reference.Document
	tag string
}

// documents returns the files of the reference by path below Base. The page is rendered at the first request for a
// document.
var documents = sync.OnceValue(func() map[string]*document {
	byPath := make(map[string]*document)
	for _, d := range reference.Documents() {
		byPath[d.Path] = &document{d, tagOf(d.Body)}
	}
	return byPath
})

// documentAt returns the document at a path below Base, or nil.
func documentAt(path string) *document {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	// The names are listed here so that other requests do not render the page. A new document must be added here too.
	switch name {
	case "openapi.json", "docs", "docs.md", "llms.txt", "report":
		return documents()[path]
	}
	return nil
}

// serve responds with the document.
func (d *document) serve(x *exchange, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return problem.NotAllowed("GET, HEAD", Base+d.Path+" is read-only.")
	}
	x.set("Cache-Control", "public, no-cache")
	// Headers are set before the check of the tag: a response 304 has them too.
	x.set("X-Content-Type-Options", "nosniff")
	if d.Path == "/docs" {
		x.set("Vary", "Accept")
		if request.PrefersMarkdown(r.Header) {
			// The Markdown at the same address, with its own tag.
			d = documents()["/docs.md"]
		}
	}
	// Only pages have a policy.
	if d.Policy != "" {
		x.set("Content-Security-Policy", d.Policy)
		x.set("Referrer-Policy", "no-referrer")
	}
	if d.Link != "" {
		x.set("Link", d.Link)
	}
	if !x.unchanged(r, d.tag) {
		x.write(http.StatusOK, d.MediaType, d.Body)
	}
	return nil
}

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

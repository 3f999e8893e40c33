package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"

	"aiv/gateway/problem"
	"aiv/gateway/reference"
)

// A document is a part of the reference. It needs no key, spends none's minute, and is logged and counted as no route.
type document struct {
	path      string // below Base
	mediaType string
	body      []byte
	tag       string
	policy    string // the page's Content-Security-Policy
}

// documents are what the reference consists of, by where it stands below Base. They are made when the first one is asked for.
var documents = sync.OnceValue(func() map[string]*document {
	made := make(map[string]*document)
	for _, d := range reference.Documents(describe()) {
		sum := sha256.Sum256(d.Body)
		made[d.Path] = &document{
			path: d.Path, mediaType: d.MediaType, body: d.Body,
			tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, policy: d.Policy,
		}
	}
	return made
})

// documentAt returns the document at a path below Base, or nil.
func documentAt(path string) *document {
	if path == "/openapi.json" || path == "/docs" || strings.HasPrefix(path, "/docs/") {
		return documents()[path]
	}
	return nil
}

// serve answers a request for a document.
func (d *document) serve(x *exchange, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return problem.NotAllowed("GET, HEAD", Base+d.path+" is only read.")
	}
	x.set("Cache-Control", "public, no-cache")
	x.set("X-Content-Type-Options", "nosniff")
	if d.policy != "" {
		x.set("Content-Security-Policy", d.policy)
		x.set("Referrer-Policy", "no-referrer")
	}
	if !x.unchanged(r, d.tag) {
		x.write(http.StatusOK, d.mediaType, d.body)
	}
	return nil
}

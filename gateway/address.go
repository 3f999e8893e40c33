package gateway

import (
	"mime"
	"net/http"
	"strings"
)

// readAddress reads what a request to the one address asks for: a read names its route in the query, a write in its
// envelope.
func readAddress(x *exchange, r *http.Request) (logicalRequest, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return readQuery(x, r)
	case http.MethodPost:
		return readEnvelope(x, r)
	}
	return logicalRequest{}, methodNotAllowed("GET, HEAD, POST", "Reads are sent by GET, writes by POST with an envelope.")
}

// readQuery reads ?path=/v1/runs&limit=20. The filters may also stand inside path.
func readQuery(x *exchange, r *http.Request) (l logicalRequest, err error) {
	if err := x.params.parse(r.URL.RawQuery); err != nil {
		return l, err
	}
	paths := x.params.take("path")
	if len(paths) != 1 || paths[0] == "" {
		return l, invalidParameter("path", "must be given once, and name a logical route such as /v1/me")
	}
	l = logicalRequest{method: r.Method}
	l.path, err = splitPath(x, paths[0])
	return l, err
}

// splitPath takes the parameters that stand inside a path to the others.
func splitPath(x *exchange, path string) (string, error) {
	path, query, ok := strings.Cut(path, "?")
	if !ok {
		return path, nil
	}
	var inner parameters
	if err := inner.parse(query); err != nil {
		return "", err
	}
	for _, p := range inner {
		if len(x.params.get(p.name)) > 0 {
			return "", invalidParameter(p.name, "stands both beside path and inside it")
		}
	}
	x.params = append(x.params, inner...)
	return path, nil
}

// readEnvelope reads {"path","method","body"}. It never performs a read, which would hide it from caches and logs that
// know what GET means.
func readEnvelope(x *exchange, r *http.Request) (l logicalRequest, err error) {
	v, err := readJSON(x, r)
	if err != nil {
		return l, err
	}
	if err := x.params.parse(r.URL.RawQuery); err != nil {
		return l, err
	}
	var f faults
	o := f.object(v, "#", "path", "method", "body")
	l = logicalRequest{method: o.text("method"), path: o.text("path")}
	if body, ok := o.member("body"); ok {
		if body.kind != kindObject {
			f.add("#/body", "must be an object, not "+body.describe())
		}
		x.envelope = &body
	}
	if len(f) > 0 {
		return l, &problem{code: codeInvalidEnvelope, detail: "The envelope has exactly the members path, method and body.", errors: f}
	}
	if l.path, err = splitPath(x, l.path); err != nil {
		return l, err
	}
	if allow := methodsOf(l.path); allow != "" && (l.method == http.MethodGet || l.method == http.MethodHead) {
		return l, methodNotAllowed(allow, "An envelope performs no reads; send GET to "+Base+"?path="+l.path+".")
	}
	return l, nil
}

// readJSON reads a request's body as strict JSON.
func readJSON(x *exchange, r *http.Request) (value, error) {
	if err := checkMediaType(r.Header); err != nil {
		return value{}, err
	}
	body, err := x.readBody(r)
	if err != nil {
		return value{}, err
	}
	v, err := parseJSON(body)
	if err != nil {
		return v, &problem{code: codeInvalidJSON, detail: "The body is not JSON as it is taken here: " + err.Error() + "."}
	}
	return v, nil
}

func checkMediaType(h http.Header) error {
	types := h["Content-Type"]
	if len(types) == 1 && types[0] != "application/json" {
		mediaType, params, err := mime.ParseMediaType(types[0])
		charset, given := params["charset"]
		if err != nil || mediaType != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
			types = nil
		}
	}
	if len(types) != 1 {
		return &problem{code: codeUnsupportedMediaType, detail: "Send the body as Content-Type: application/json, in UTF-8."}
	}
	if encoding := h["Content-Encoding"]; len(encoding) > 0 && !strings.EqualFold(encoding[0], "identity") {
		return &problem{code: codeUnsupportedMediaType, detail: "Send the body without a Content-Encoding."}
	}
	return nil
}

package gateway

import (
	"net/http"
	"strings"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store/strictjson"
)

// readAddress returns the logical request of a request to the one address: a read names its route in the query, a write
// in its envelope.
func readAddress(x *exchange, r *http.Request) (logicalRequest, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return readQuery(x, r)
	case http.MethodPost:
		return readEnvelope(x, r)
	}
	return logicalRequest{}, problem.NotAllowed("GET, HEAD, POST", "Send reads by GET and writes by POST with an envelope.")
}

// readQuery reads ?path=/v1/runs&limit=20. The filters may be inside path as well.
func readQuery(x *exchange, r *http.Request) (l logicalRequest, err error) {
	x.queryErr = x.params.parse(r.URL.RawQuery)
	paths := x.params.take("path")
	switch {
	case x.queryErr != nil && len(paths) == 0:
		return l, x.queryErr
	case len(paths) == 1 && paths[0].fault != "":
		return l, invalidPath(paths[0].fault, x.params)
	case len(paths) != 1 || paths[0].value == "":
		return l, invalidPath("must be given exactly once and name a logical route such as /v1/me", x.params)
	}
	return logicalRequest{method: r.Method, path: splitPath(x, paths[0].value)}, nil
}

// splitPath moves the parameters inside a path to the others.
func splitPath(x *exchange, path string) string {
	path, query, ok := strings.Cut(path, "?")
	if !ok {
		return path
	}
	var inner parameters
	err := inner.parse(query)
	for i := range inner {
		if p := &inner[i]; p.fault == "" && len(x.params.get(p.name)) > 0 {
			p.fault = "is given both beside path and inside it"
		}
	}
	x.params = append(x.params, inner...)
	switch {
	case x.queryErr != nil:
	case err != nil:
		x.queryErr = err
	case len(x.params) > maxParameters:
		x.queryErr = tooManyParameters()
	}
	return path
}

// readEnvelope reads {"path","method","body"}.
func readEnvelope(x *exchange, r *http.Request) (l logicalRequest, err error) {
	v, err := readJSON(x, r)
	if err != nil {
		return l, err
	}
	x.queryErr = x.params.parse(r.URL.RawQuery)
	var f problem.Faults
	o := request.NewObject(v, "#", &f, "path", "method", "body")
	l = logicalRequest{method: o.Text("method"), path: o.Text("path")}
	if body, ok := o.Member("body"); ok {
		if body.Kind != strictjson.KindObject {
			f.Add("#/body", "must be an object, not "+body.Describe())
		}
		x.envelope = &body
	}
	if len(f) > 0 {
		return l, &problem.Problem{Code: problem.InvalidEnvelope, Detail: "The envelope must have exactly the members path, method and body.", Errors: f}
	}
	l.path = splitPath(x, l.path)
	return l, nil
}

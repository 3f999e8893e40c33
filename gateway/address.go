package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store"
	"aiv/store/strictjson"
)

// A logicalRequest is what a request asks for, read from its query, its envelope or its plain address.
type logicalRequest struct {
	method, path string
	params       request.Parameters
	tooMany      bool              // parameters; the route and the scope are checked before this is reported
	plain        bool              // sent to a plain address
	envelope     *strictjson.Value // the body inside the envelope; nil without an envelope
}

// newLogicalRequest returns a request without an envelope, whose parameters are in the given query.
func newLogicalRequest(method, path, query string) logicalRequest {
	params := request.ReadParameters(query)
	return logicalRequest{method: method, path: path, params: params, tooMany: len(params) > request.MaxParameters}
}

// readAddress returns the logical request of a request whose path below Base is rest. At the one address, a read names
// its route in the query, a write in its envelope.
func readAddress(x *exchange, r *http.Request, rest string) (logicalRequest, error) {
	if rest != "" {
		l := newLogicalRequest(r.Method, rest, r.URL.RawQuery)
		l.plain = true
		return l, nil
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return readQuery(r)
	case http.MethodPost:
		return readEnvelope(x, r)
	}
	return logicalRequest{}, problem.NotAllowed("GET, HEAD, POST", "Send reads by GET and writes by POST with an envelope.")
}

// readQuery reads ?path=/v1/runs&limit=20. The filters may also be inside path.
func readQuery(r *http.Request) (logicalRequest, error) {
	l := newLogicalRequest(r.Method, "", r.URL.RawQuery)
	paths := l.params.Take("path")
	switch {
	// The parameters beyond the bound were not read, and path may be one of them.
	case l.tooMany && len(paths) == 0:
		return l, request.TooManyParameters()
	case len(paths) == 1 && paths[0].Fault != "":
		return l, invalidPath(paths[0].Fault, l.params)
	case len(paths) != 1 || paths[0].Value == "":
		return l, invalidPath("must be given exactly once and name a logical route such as /v1/me", l.params)
	}
	// Take has removed path from l.params, because it is no parameter of the route.
	l.path = paths[0].Value
	l.splitPath()
	return l, nil
}

// readEnvelope reads {"path","method","body"}.
func readEnvelope(x *exchange, r *http.Request) (l logicalRequest, err error) {
	v, err := readJSON(x, r)
	if err != nil {
		return l, err
	}
	var f problem.Faults
	o := request.NewObject(&v, request.At("#"), &f, "path", "method", "body")
	// The method is not checked here: an unknown one is 405 for the path, as at a plain address.
	l = newLogicalRequest(o.Text("method"), o.Text("path"), r.URL.RawQuery)
	if body := o.Member("body"); body != nil {
		// The members of the body are checked by the route's handler, after the scope.
		if body.Kind != strictjson.KindObject {
			f.Add("#/body", "must be an object, not "+body.Describe())
		}
		l.envelope = body
	}
	if len(f) > 0 {
		return l, &problem.Problem{Code: problem.InvalidEnvelope, Detail: "The envelope must have exactly the members path, method and body.", Errors: f}
	}
	l.splitPath()
	return l, nil
}

// splitPath moves the parameters inside the path to the others.
func (l *logicalRequest) splitPath() {
	path, query, ok := strings.Cut(l.path, "?")
	if !ok {
		return
	}
	inner := request.ReadParameters(query)
	for i := range inner {
		// It is unknown which of two parameters with one name the client means.
		if p := &inner[i]; p.Fault == "" && len(l.params.Get(p.Name)) > 0 {
			p.Fault = "is given both beside path and inside it"
		}
	}
	l.path, l.params = path, append(l.params, inner...)
	l.tooMany = l.tooMany || len(l.params) > request.MaxParameters
}

// pathID returns the id in the path of a route. A malformed one is the id of nothing, which absent reports.
func pathID(r *http.Request, prefix string, absent error) (store.ID, error) {
	id, err := store.ParseID(prefix, r.PathValue("id"))
	if err != nil {
		return id, absent
	}
	return id, nil
}

// originAllowed reports whether the origin of a request is allowed. Programs send no Origin. Browsers send the origin
// of the page, which must be the server's. At a loopback address its host must also be a loopback name: a page whose
// own name was made to resolve to 127.0.0.1 sends that name as both Origin and Host (DNS rebinding).
func originAllowed(r *http.Request) bool {
	sent := r.Header["Origin"]
	if len(sent) == 0 {
		return true
	}
	if len(sent) > 1 {
		return false
	}
	origin := strings.ToLower(sent[0])
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return false // also null, and addresses of pages
	}
	// Browsers leave the default port out of Origin; Host may have it or not.
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port == "" || withPort(u.Host, port) != withPort(strings.ToLower(r.Host), port) {
		return false
	}
	return !atLoopback(r) || isLoopbackName(u.Hostname())
}

// withPort adds the default port to a host without one.
func withPort(host, port string) string {
	if _, given, err := net.SplitHostPort(host); err == nil && given != "" {
		return host
	}
	return strings.TrimSuffix(host, ":") + ":" + port
}

// atLoopback reports whether the connection of a request arrived at a loopback address.
func atLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// isLoopbackName reports whether a host, without its port, is localhost or a loopback address.
func isLoopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

package gateway

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/telemetry"
)

// A route is an operation of the API.
type route struct {
	method, path string
	scopes       []string // one of them is required; none: any valid key
	entitled     bool     // requires api_access, checked before the scope
	handle       func(*Gateway, *exchange, *http.Request) error
}

func (r *route) name() string { return r.method + " " + r.path }

// routes are the logical routes. GET includes HEAD. POST /v1/runs requires api_access in its first run check.
var routes = []route{
	{"GET", "/v1/me", nil, false, (*Gateway).me},
	{"GET", "/v1/runs", []string{"runs:read"}, true, runList.serve},
	{"GET", "/v1/runs/{id}", []string{"runs:read"}, true, (*Gateway).readRun},
	{"GET", "/v1/runs/{id}/results", []string{"runs:read"}, true, (*Gateway).readResults},
	{"POST", "/v1/runs", []string{"runs:write"}, false, (*Gateway).createRun},
	{"POST", "/v1/runs/{id}/cancel", []string{"runs:write"}, true, (*Gateway).cancelRun},
	{"GET", "/v1/usage", []string{"runs:read"}, true, (*Gateway).readUsage},
	{"GET", "/v1/catalog/models", []string{"runs:read", "runs:write"}, true, (*Gateway).readModels},
	{"GET", "/v1/catalog/questions", []string{"runs:read", "runs:write"}, true, questionList.serve},
	{"GET", "/v1/recommendations", []string{"recommendations:read"}, true, recommendationList.serve},
	{"GET", "/v1/alerts", []string{"alerts:read"}, true, alertList.serve},
	{"GET", "/v1/webhooks", webhookScope, true, webhookList.serve},
	{"POST", "/v1/webhooks", webhookScope, true, (*Gateway).createWebhook},
	{"GET", "/v1/webhooks/{id}", webhookScope, true, (*Gateway).readWebhook},
	{"PATCH", "/v1/webhooks/{id}", webhookScope, true, (*Gateway).changeWebhook},
	{"DELETE", "/v1/webhooks/{id}", webhookScope, true, (*Gateway).deleteWebhook},
	{"POST", "/v1/webhooks/{id}/rotate", webhookScope, true, (*Gateway).rotateWebhook},
	{"POST", "/v1/webhooks/{id}/test", webhookScope, true, (*Gateway).testWebhook},
	{"POST", "/v1/webhooks/{id}/resend", webhookScope, true, (*Gateway).resendEvent},
	{"GET", "/v1/webhooks/{id}/deliveries", webhookScope, true, deliveryList.serve},
	{"GET", "/v1/events", webhookScope, true, eventList.serve},
	{"GET", "/v1/events/{id}", webhookScope, true, (*Gateway).readEvent},
}

// routeNames are the names of routes by index, and "none" for requests without a route.
var routeNames = func() (names []string) {
	for i := range routes {
		names = append(names, routes[i].name())
	}
	return append(names, "none")
}()

// NewMetrics returns counters at zero for the logical routes.
func NewMetrics() *telemetry.Metrics { return telemetry.NewMetrics(routeNames...) }

// newRoutes returns the mux of the logical routes. The ResponseWriter of its handlers is the *exchange.
func (g *Gateway) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range routes {
		r := &routes[i]
		mux.HandleFunc(r.name(), func(w http.ResponseWriter, req *http.Request) {
			x := w.(*exchange)
			x.route, x.routeIndex = r, i
			if r.method == http.MethodGet && x.envelope != nil {
				// Caches, logs and retrying clients rely on reads being sent by GET.
				x.fail(problem.NotAllowed(methodsOf(r.path), "An envelope cannot perform a read; send GET to "+Base+"?path="+r.path+"."))
				return
			}
			if err := g.serveRoute(x, req, r); err != nil {
				x.fail(err)
			}
		})
	}
	for i := range routes {
		if p := routes[i].path; !slices.ContainsFunc(routes[:i], func(r route) bool { return r.path == p }) {
			allow := methodsOf(p)
			mux.HandleFunc(p, func(w http.ResponseWriter, req *http.Request) {
				w.(*exchange).fail(problem.NotAllowed(allow, p+" allows only "+allow+"."))
			})
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.(*exchange).fail(noSuchRoute()) })
	return mux
}

// serveRoute calls the route's handler if the credential may use the route.
func (g *Gateway) serveRoute(x *exchange, req *http.Request, r *route) error {
	c := x.credential()
	if r.entitled && !c.Plan.Entitled(auth.APIAccess) {
		return &problem.Problem{Code: problem.EntitlementRequired, Detail: "The plan " + c.Plan.Code + " does not include " + auth.APIAccess + "."}
	}
	if len(r.scopes) > 0 && !c.HasScope(r.scopes...) {
		return insufficientScope(r)
	}
	if x.tooMany {
		return request.TooManyParameters()
	}
	return r.handle(g, x, req)
}

// dispatch passes a request to its logical route. A path is matched as it is written: a path that the mux would clean or
// redirect is not found.
func (g *Gateway) dispatch(x *exchange, r *http.Request) {
	if x.path == "" || x.path[0] != '/' || path.Clean(x.path) != x.path {
		x.fail(noSuchRoute())
		return
	}
	x.routedURL = url.URL{Path: x.path}
	x.routed = *r
	x.routed.Method, x.routed.URL = x.method, &x.routedURL
	g.routes.ServeHTTP(x, &x.routed)
}

// methodsOf returns the methods of a path pattern, as Allow lists them.
func methodsOf(path string) string {
	var methods []string
	for _, r := range routes {
		if r.path == path {
			methods = append(methods, r.method)
			if r.method == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

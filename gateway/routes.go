package gateway

import (
	"maps"
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
	golden       string   // the folder of its golden files
	scopes       []string // one of them is required; none: any valid key
	entitled     bool     // requires api_access, checked before the scope
	handle       func(*Gateway, *exchange, *http.Request) error
	input        input
}

// An input is what a route reads besides the values in its path and the body.
type input struct {
	query  []string // parameters; others are rejected
	header []string // fields, besides those that all routes read
}

func (r *route) name() string { return r.method + " " + r.path }

var (
	// Scopes and headers of routes.
	readRuns    = []string{"runs:read"}
	writeRuns   = []string{"runs:write"}
	useRuns     = []string{"runs:read", "runs:write"}
	idempotent  = []string{"Idempotency-Key"}
	conditional = []string{"If-None-Match"}
)

// routes are the logical routes. GET includes HEAD. POST /v1/runs requires api_access in its first run check.
//
// A new route is its entry here, its handler, its golden files, and its operation in reference/openapi.json. Tests compare
// the operation with the entry, the handler and the files.
var routes = []route{
	// The fields are method, path, golden, scopes, entitled, handle and input.
	{"GET", "/v1/me", "me", nil, false, (*Gateway).me, input{}},
	{"GET", "/v1/runs", "runs.list", readRuns, true, runList.serve, input{query: runList.query()}},
	{"GET", "/v1/runs/{id}", "runs.read", readRuns, true, (*Gateway).readRun, input{}},
	{"GET", "/v1/runs/{id}/results", "runs.results", readRuns, true, (*Gateway).readResults, input{query: resultList.query()}},
	{"GET", "/v1/metrics", "metrics.read", readRuns, true, (*Gateway).readMetrics, input{query: namesOf(metricsFilters)}},
	{"GET", "/v1/metrics/compare", "metrics.compare", readRuns, true, (*Gateway).readComparison, input{query: namesOf(comparisonFilters)}},
	{"GET", "/v1/sources", "sources", readRuns, true, (*Gateway).readSources,
		input{query: append([]string{"limit", "cursor"}, namesOf(sourcesFilters)...)}},
	{"POST", "/v1/runs", "runs.create", writeRuns, false, (*Gateway).createRun, input{header: idempotent}},
	{"POST", "/v1/runs/{id}/cancel", "runs.cancel", writeRuns, true, (*Gateway).cancelRun, input{}},
	{"GET", "/v1/usage", "usage", readRuns, true, (*Gateway).readUsage, input{query: []string{"month"}}},
	{"GET", "/v1/catalog/models", "catalog.models", useRuns, true, (*Gateway).readModels,
		input{query: modelList.query(), header: conditional}},
	{"GET", "/v1/catalog/questions", "catalog.questions", useRuns, true, questionList.serve,
		input{query: questionList.query(), header: conditional}},
	{"POST", "/v1/catalog/questions", "questions.create", writeRuns, true, (*Gateway).createQuestion, input{}},
	{"GET", questionPath + "{id}", "questions.read", useRuns, true, (*Gateway).readQuestion, input{}},
	{"PATCH", questionPath + "{id}", "questions.change", writeRuns, true, (*Gateway).changeQuestion, input{}},
	{"GET", "/v1/recommendations", "recommendations", []string{"recommendations:read"}, true, recommendationList.serve,
		input{query: recommendationList.query()}},
	{"GET", "/v1/alerts", "alerts", []string{"alerts:read"}, true, alertList.serve, input{query: alertList.query()}},
	{"GET", "/v1/brands", "brands.list", readRuns, true, brandList.serve, input{query: brandList.query()}},
	{"GET", "/v1/brands/{id}", "brands.read", readRuns, true, (*Gateway).readBrand, input{}},
	{"POST", "/v1/brands", "brands.create", writeRuns, true, (*Gateway).createBrand, input{}},
	{"PATCH", "/v1/brands/{id}", "brands.change", writeRuns, true, (*Gateway).changeBrand, input{}},
	{"POST", "/v1/brands/preview", "brands.preview", writeRuns, true, (*Gateway).previewBrand, input{}},
	{"GET", "/v1/schedules", "schedules.list", readRuns, true, scheduleList.serve, input{query: scheduleList.query()}},
	{"POST", "/v1/schedules", "schedules.create", writeRuns, true, (*Gateway).createSchedule, input{}},
	{"GET", "/v1/schedules/{id}", "schedules.read", readRuns, true, (*Gateway).readSchedule, input{query: namesOf(afterFilters)}},
	{"PATCH", "/v1/schedules/{id}", "schedules.change", writeRuns, true, (*Gateway).changeSchedule, input{}},
	{"DELETE", "/v1/schedules/{id}", "schedules.delete", writeRuns, true, (*Gateway).deleteSchedule, input{}},
	{"GET", "/v1/schedules/{id}/occurrences", "schedules.occurrences", readRuns, true, occurrenceList.serve,
		input{query: occurrenceList.query()}},
	{"GET", "/v1/webhooks", "webhooks.list", webhookScope, true, webhookList.serve, input{query: webhookList.query()}},
	{"POST", "/v1/webhooks", "webhooks.create", webhookScope, true, (*Gateway).createWebhook, input{}},
	{"GET", "/v1/webhooks/{id}", "webhooks.read", webhookScope, true, (*Gateway).readWebhook, input{}},
	{"PATCH", "/v1/webhooks/{id}", "webhooks.change", webhookScope, true, (*Gateway).changeWebhook, input{}},
	{"DELETE", "/v1/webhooks/{id}", "webhooks.delete", webhookScope, true, (*Gateway).deleteWebhook, input{}},
	{"POST", "/v1/webhooks/{id}/rotate", "webhooks.rotate", webhookScope, true, (*Gateway).rotateWebhook, input{}},
	{"POST", "/v1/webhooks/{id}/test", "webhooks.test", webhookScope, true, (*Gateway).testWebhook, input{}},
	{"POST", "/v1/webhooks/{id}/resend", "webhooks.resend", webhookScope, true, (*Gateway).resendEvent, input{}},
	{"GET", "/v1/webhooks/{id}/deliveries", "webhooks.deliveries", webhookScope, true, deliveryList.serve, input{query: deliveryList.query()}},
	{"GET", "/v1/events", "events.list", webhookScope, true, eventList.serve, input{query: eventList.query()}},
	{"GET", "/v1/events/{id}", "events.read", webhookScope, true, (*Gateway).readEvent, input{}},
}

// Indexes of routeNames after the indexes of routes.
var (
	assistantRoute = len(routes)
	noRoute        = len(routes) + 1
)

// routeNames are the names of the routes by index, then the name of the tools for assistants, and "none" for requests
// without a route.
var routeNames = func() (names []string) {
	for i := range routes {
		names = append(names, routes[i].name())
	}
	return append(names, http.MethodPost+" "+assistantPath, "none")
}()

// NewMetrics returns counters at zero for the logical routes.
func NewMetrics() *telemetry.Metrics { return telemetry.NewMetrics(routeNames...) }

// dispatch passes a request to its logical route. A path is matched as it is written: a path that the mux would clean
// or redirect is not found, except the path of a question.
func (g *Gateway) dispatch(x *exchange, r *http.Request) {
	var ok bool
	if x.routedURL, ok = questionURL(x.path); !ok {
		if x.path == "" || x.path[0] != '/' || path.Clean(x.path) != x.path {
			x.fail(noSuchRoute())
			return
		}
		x.routedURL = url.URL{Path: x.path}
	}
	// A shallow copy with the logical method and path. Handlers read headers and the body from it as from the original.
	x.routed = *r
	x.routed.Method, x.routed.URL = x.method, &x.routedURL
	g.routes.ServeHTTP(x, &x.routed)
}

// newRoutes returns the mux of the logical routes. The ResponseWriter of its handlers is the *exchange.
func (g *Gateway) newRoutes() *http.ServeMux {
	byPath := make(map[string]map[string]int) // indexes of routes, by path and method
	for i, r := range routes {
		if byPath[r.path] == nil {
			byPath[r.path] = make(map[string]int)
		}
		byPath[r.path][r.method] = i
		if r.method == http.MethodGet {
			byPath[r.path][http.MethodHead] = i
		}
	}
	mux := http.NewServeMux()
	for path, byMethod := range byPath {
		mux.Handle(path, g.pathHandler(path, byMethod))
	}
	// The pattern / matches all other paths, so that the mux itself writes no response.
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.(*exchange).fail(noSuchRoute()) })
	return mux
}

// pathHandler returns the handler of all methods of a path. The patterns of the mux have no methods: with them, GET
// /v1/brands/preview would match GET /v1/brands/{id}, instead of being rejected with 405.
func (g *Gateway) pathHandler(path string, byMethod map[string]int) http.HandlerFunc {
	allow := strings.Join(slices.Sorted(maps.Keys(byMethod)), ", ")
	return func(w http.ResponseWriter, req *http.Request) {
		x := w.(*exchange)
		i, ok := byMethod[req.Method]
		if !ok {
			x.fail(problem.NotAllowed(allow, path+" allows only "+allow+"."))
			return
		}
		r := &routes[i]
		// Set before any check, so that the log and the metrics name the route of a rejected request too.
		x.route, x.routeIndex = r, i
		if r.method == http.MethodGet && x.envelope != nil {
			// Caches, logs and retrying clients rely on reads being sent by GET.
			x.fail(problem.NotAllowed(allow, "An envelope cannot perform a read; send GET to "+Base+"?path="+path+"."))
			return
		}
		if err := g.serveRoute(x, req, r); err != nil {
			x.fail(err)
		}
	}
}

// serveRoute calls the route's handler if the credential may use the route. The handlers of routes that have parameters
// report unknown ones together with other faults. The order of the checks is part of the API (README.md, Architecture).
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
	if r.input.query == nil {
		if err := x.params.None(); err != nil {
			return err
		}
	}
	return r.handle(g, x, req)
}

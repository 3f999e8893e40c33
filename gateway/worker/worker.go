// Package worker serves the interface through which workers claim jobs, renew their leases and settle them, over HTTP.
// README.md describes it for authors of workers. Its JSON, problem documents and headers follow the rules of the public
// API.
//
// It owns no table. Package runs/jobs does the work; command aiv dispatch serves the Handler on a listener for
// operators' programs. A request goes through these steps:
//
//	request id → token (401) → route (404, 405) → parameters (400) → media type, size, JSON (415, 413, 400) → members (400) →
//	package jobs
//
// A claim may wait for jobs. So package jobs checks again, in its transaction, that the token is not revoked.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/telemetry"
	"aiv/runs/jobs"
	"aiv/store"
)

// Base is the path under which all routes are.
const Base = "/worker/v1"

// Config contains what a Handler depends on.
type Config struct {
	Jobs     *jobs.Dispatcher
	Workers  *auth.WorkerLookup
	NewID    func() store.ID
	Timeout  time.Duration // of a request, besides the time that a claim waits
	Delay    time.Duration // of 401 responses, so that guessing tokens is slow
	Log      *slog.Logger
	Requests *telemetry.LogWriter // nil: requests are logged by Log
	Metrics  *telemetry.Metrics   // from NewMetrics
}

// Handler is the handler of the worker interface. It requires deadlines for bodies and contexts that end when the
// client leaves, as httpserver.New provides.
type Handler struct {
	cfg    Config
	memory budget
}

// New returns a Handler.
func New(cfg Config) *Handler {
	return &Handler{cfg: cfg, memory: budget{free: maxMemory}}
}

// An operation is a route; all are POST.
type operation struct {
	index int // in operationNames
	serve func(*Handler, *exchange) error
}

var operations = map[string]operation{
	Base + "/claim":     {1, (*Handler).claim},
	Base + "/heartbeat": {2, (*Handler).heartbeat},
	Base + "/settle":    {3, (*Handler).settle},
}

// operationNames are the routes in logs and metrics. The first is for requests that were rejected before their route
// was known.
var operationNames = []string{"none", "POST " + Base + "/claim", "POST " + Base + "/heartbeat", "POST " + Base + "/settle"}

// NewMetrics returns counters at zero for the routes.
func NewMetrics() *telemetry.Metrics { return telemetry.NewMetrics(operationNames...) }

// problems reports the problems of this interface. Their codes are described in the reference of the public API.
var problems = problem.API{Reference: "/external-api-v1/docs", Realm: "worker"}

// An exchange is one request and its response.
type exchange struct {
	http.ResponseWriter
	request   *http.Request
	requestID string
	worker    auth.Worker // the zero Worker until it is found

	// For the log and the metrics.
	route      int // index in operationNames
	roundTrips atomic.Int32
	status     int    // 0: no response has begun
	code       string // of the problem in the response
	err        error  // the cause of an internal error

	// Used by the Handler's memory.
	bodySize      int                   // bytes
	reserved      int                   // bytes
	transferSince time.Time             // when the body or the response began to be transferred
	deadline      func(time.Time) error // sets the deadline of the transfer
	ended         bool                  // the transfer was ended
}

// WriteHeader records the status.
func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// ServeHTTP serves one request, counts it and logs it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := &exchange{ResponseWriter: w, request: r, requestID: h.cfg.NewID().Text("req")}
	x.Header()["X-Request-Id"] = []string{x.requestID}
	defer func() {
		// The request is over, with or without a response, and releases its memory.
		h.memory.keep(x, 0)
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			h.fail(x, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		h.record(x, time.Since(began))
		// For ErrAbortHandler, net/http closes the connection without logging a stack.
		if p == http.ErrAbortHandler {
			panic(p)
		}
	}()
	if err := h.serve(x); err != nil {
		h.fail(x, err)
	}
}

// serve serves a request if its token is valid. If package jobs finds later that the token is revoked, the response is
// the same.
func (h *Handler) serve(x *exchange) error {
	err := h.findWorker(x)
	if err == nil {
		err = h.serveWorker(x)
	}
	if errors.Is(err, auth.ErrUnknownWorker) {
		err = problems.InvalidKey("The token of the Authorization header is not valid.")
	}
	if problem.IsUnauthorized(err) {
		time.Sleep(h.cfg.Delay)
	}
	return err
}

// findWorker finds the worker that sent the request.
func (h *Handler) findWorker(x *exchange) (err error) {
	token, ok := request.Bearer(x.request.Header)
	if ok && token == "" {
		return problems.MissingCredentials("Send the header Authorization: Bearer <WORKER_TOKEN>.")
	}
	hash, err := auth.HashWorkerToken(token)
	if err != nil {
		return auth.ErrUnknownWorker
	}
	ctx, cancel := h.deadline(x)
	defer cancel()
	x.worker, err = h.cfg.Workers.Find(ctx, hash)
	return err
}

// serveWorker serves a request of a worker that was found.
func (h *Handler) serveWorker(x *exchange) error {
	path := x.request.URL.EscapedPath()
	op, ok := operations[path]
	switch {
	case !ok:
		return &problem.Problem{Code: problem.RouteNotFound, Detail: "No route of the worker interface has this path."}
	case x.request.Method != http.MethodPost:
		return problem.NotAllowed(http.MethodPost, path+" allows only POST.")
	}
	// From here on the log and the metrics name the route.
	x.route = op.index
	params := request.ReadParameters(x.request.URL.RawQuery)
	if len(params) > request.MaxParameters {
		return request.TooManyParameters()
	}
	if err := params.None(); err != nil {
		return err
	}
	return op.serve(h, x)
}

// deadline returns a context for what a request waits for. It does not end when the client leaves, so that its reports
// are recorded. A claim does not use it.
func (h *Handler) deadline(x *exchange) (context.Context, context.CancelFunc) {
	return context.WithTimeout(store.CountRoundTrips(context.WithoutCancel(x.request.Context()), &x.roundTrips), h.cfg.Timeout)
}

// fail responds with the problem for err, unless a response has begun. The text of an error that is not a Problem is
// only logged.
func (h *Handler) fail(x *exchange, err error) {
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		p = problem.Of(err)
	}
	// Overload is expected under high load, so it is not logged as an error.
	if !ok && p.Code != problem.Overloaded {
		x.err = err
	}
	if x.status == 0 {
		x.code = p.Code
		problems.Write(x, p, x.requestID)
	}
}

// record counts a request and logs it.
func (h *Handler) record(x *exchange, took time.Duration) {
	h.cfg.Metrics.Count(x.route, x.status, took)
	l := telemetry.Request{ID: x.requestID, Method: x.request.Method, Route: operationNames[x.route], Status: x.status, Code: x.code, Took: took,
		RoundTrips: int(x.roundTrips.Load()), Remote: x.request.RemoteAddr, Trace: telemetry.ReadTrace(x.request.Header), Err: x.err}
	if x.worker.ID != (store.ID{}) {
		l.Worker = &x.worker
	}
	l.LogTo(h.cfg.Requests, h.cfg.Log)
}

// respond sends a JSON body.
func (h *Handler) respond(x *exchange, body []byte) {
	header := x.Header()
	header["Content-Type"] = []string{"application/json"}
	header["Cache-Control"] = []string{"no-store"}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.WriteHeader(http.StatusOK)
	// A large response counts against the memory until it is sent, and may be ended by a deadline.
	if len(body) <= small {
		x.Write(body) // an error means that the client has disconnected
		return
	}
	h.memory.reserveAnyway(x, cap(body))
	if h.memory.transfer(x, http.NewResponseController(x.ResponseWriter).SetWriteDeadline, func() { x.Write(body) }) {
		panic(http.ErrAbortHandler)
	}
}

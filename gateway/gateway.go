// Package gateway serves the developer API: it translates HTTP requests into calls of runs, catalog and insights, and
// their results into JSON. Command aiv serve uses it. It owns no table.
//
// A request passes through ServeHTTP, serve, dispatch and one logical route, an entry of the table in routes.go:
//
//	request id → credential and rate limit → address or envelope → route → entitlement → scope → the route's handler
//
// The logical route is named by the parameter path, by an envelope, or by the path below Base (a plain address).
//
// The wire forms are types, most of whose names end in Document, and functions such as appendRun for frequent
// responses. reference/openapi.json describes their members. The handler of a route is a method of Gateway, or the
// method serve of a list.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway/mcp"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/telemetry"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/batch"
)

// Base is the path of the gateway's one address.
const Base = "/external-api-v1"

// Config contains what a Gateway depends on.
type Config struct {
	Limits  *limits.Limiter // with catalog.RevisionSQL as CatalogRevision
	Runs    *runs.Runs
	Catalog *catalog.Catalog
	Reads   *pgxpool.Pool  // for lists and results
	Standby *store.Standby // also for these; requires that Limits returns the WAL position of each request; nil: none

	// Webhooks uses the pool Reads for its changes too, so that they cannot take connections from counting and runs.
	Webhooks *webhooks.Webhooks

	Schedules *schedules.Schedules // uses the pool Reads too

	Questions *catalog.OwnQuestions // uses the pool Reads too

	MaxReads   int // connections that lists and results use at a time; Runs reads single runs over one more
	MaxWaiting int // reads that wait for their turn; one account may have a quarter of that, and as many runs being created

	CursorSecret []byte // the same in all processes, so that each accepts the cursors of the others

	Log      *slog.Logger
	Requests *telemetry.LogWriter // nil: requests are logged by Log
	NewID    func() store.ID
	Timeout  time.Duration      // of a handler's calls, or up to a 32nd less
	Delay    time.Duration      // before a 401
	Metrics  *telemetry.Metrics // from NewMetrics
	Version  string             // of the program, for assistants
}

// A Gateway is the handler of the public listener.
type Gateway struct {
	cfg       Config
	routes    *http.ServeMux
	bodies    share     // bytes
	pages     share     // bytes
	buffers   sync.Pool // *[]byte, for pages
	readQueue *readQueue
	writes    share // runs that are being created

	measureTime time.Duration // maxMeasureTime; longer in tests

	deadlines atomic.Pointer[sharedDeadline] // the latest

	models  modelPages
	answers *visibility.Counter // for previews

	assistants *mcp.Server
	toolCalls  toolCounts
}

// New returns a gateway.
func New(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg, readQueue: newReadQueue(cfg.MaxReads, cfg.MaxWaiting),
		bodies: share{max: maxBodies, maxOfOne: maxBodiesOfOne}, pages: share{max: maxPages, maxOfOne: maxPagesOfOne},
		writes: share{max: math.MaxInt, maxOfOne: batch.PartOf(cfg.MaxWaiting)}, answers: newAnswers(),
		measureTime: maxMeasureTime,
		assistants:  mcp.NewServer(cfg.Version), toolCalls: newToolCounts()}
	g.routes = g.newRoutes()
	return g
}

// ServeHTTP serves one request and logs it. A handler that panics is an internal error.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := &exchange{ResponseWriter: w, requestID: g.cfg.NewID().Text("req"), routeIndex: noRoute, bodies: &g.bodies}
	x.set("X-Request-Id", x.requestID)
	defer func() {
		if x.early != nil {
			x.early.reading.Abandon()
		}
		// Bodies are held until here, because handlers may keep parts of them. Only an admitted request has held any,
		// so x has a credential.
		if x.held > 0 {
			x.bodies.release(x.credential().AccountID, x.held)
		}
		if p := recover(); p != nil {
			x.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			// After a handler has begun a response, the panic can only be logged.
			if x.status == 0 {
				x.problem(problem.Of(x.err))
			}
		}
		g.record(r, x, time.Since(began))
	}()
	if err := g.serve(x, r); err != nil {
		x.fail(err)
	}
}

// serve authenticates and counts a request and passes it to its logical route.
func (g *Gateway) serve(x *exchange, r *http.Request) error {
	// The escaped path: a plain address is matched as the client wrote it, so that an escaped slash separates nothing.
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), Base)
	if !ok || rest != "" && rest[0] != '/' {
		return &problem.Problem{Code: problem.RouteNotFound, Detail: "The API is served at " + Base + "."}
	}
	if d := documentAt(rest); d != nil {
		return d.serve(x, r)
	}
	if strings.HasPrefix(rest, "/report/") { // a file that the report does not have; the others require no key
		return noSuchRoute()
	}
	assistant := rest == assistantPath
	if assistant {
		if err := x.checkAssistant(r); err != nil {
			return err
		}
	}
	// A read has no body, so what it reads is known before it is admitted.
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	var addressErr error
	if isRead {
		x.logicalRequest, addressErr = readAddress(x, r, rest)
	}
	if err := g.admit(x, r); err != nil {
		if problem.IsUnauthorized(err) {
			time.Sleep(g.cfg.Delay) // so that key guessing cannot starve valid clients: a connection gets ten responses a second
		}
		return err
	}
	if assistant {
		return g.assist(x, r)
	}
	if !isRead {
		x.logicalRequest, addressErr = readAddress(x, r, rest)
	}
	if addressErr != nil {
		return addressErr
	}
	g.dispatch(x, r)
	return nil
}

// admit finds the credential of a request and counts the request against its limit.
func (g *Gateway) admit(x *exchange, r *http.Request) error {
	// A key of the wrong form is rejected without the database.
	key, err := bearer(r.Header)
	if err != nil {
		return err
	}
	// Not the client's context: a client that disconnects must not avoid being counted. The limiter bounds the wait.
	// The round trip is counted here, because the limiter does not have the request's context.
	x.roundTrips.Add(1)
	var whileCounted func(*auth.Credential)
	if run, ok := x.namedRun(); ok {
		whileCounted = func(c *auth.Credential) { g.readEarly(x, c, run) }
	}
	a, err := g.cfg.Limits.Admit(context.Background(), key, whileCounted)
	if errors.Is(err, limits.ErrUnknownKey) {
		return invalidKey()
	}
	if err != nil {
		return err
	}
	x.admission = a
	x.setLimitHeaders(&a.Window)
	if !a.Admitted {
		return limitExceeded(&a.Window)
	}
	return nil
}

// bearer returns the key of a request. A header that is sent twice has an empty token too; HashKey rejects that, so the
// response says that the key is invalid, not that it is missing.
func bearer(h http.Header) (key auth.Hash, err error) {
	token, ok := request.Bearer(h)
	if ok && token == "" {
		return key, missingCredentials()
	}
	if key, err = auth.HashKey(token); err != nil {
		return key, invalidKey()
	}
	return key, nil
}

// deadline returns the context of a handler's calls. It ends after the timeout, or up to a 32nd of that earlier, because
// requests share it. It does not end with the client's context, for two reasons: net/http ends that when the client has
// closed its sending side, and such a client may still read [RFC 9112, 9.6]; and canceling a statement costs its
// connection to the database.
//
// [RFC 9112, 9.6]: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
func (g *Gateway) deadline(x *exchange) context.Context {
	now, shareFor := time.Now(), g.cfg.Timeout/32
	d := g.deadlines.Load()
	if d == nil || now.After(d.until) {
		d = &sharedDeadline{until: now.Add(shareFor)}
		d.Context, d.cancel = context.WithTimeout(context.Background(), g.cfg.Timeout)
		g.deadlines.Store(d) // concurrent requests may each store one; any will do
	}
	return store.CountRoundTrips(d, &x.roundTrips)
}

// A sharedDeadline is the context of the requests that arrive before until. A timer for each request would take 4 % of
// the processor time of a read of one run.
type sharedDeadline struct {
	context.Context
	cancel context.CancelFunc // kept for go vet, and not called: the deadline ends the context
	until  time.Time
}

// record counts and logs a request.
func (g *Gateway) record(r *http.Request, x *exchange, took time.Duration) {
	g.cfg.Metrics.Count(x.routeIndex, x.status, took)
	l := telemetry.Request{ID: x.requestID, Method: r.Method, Route: routeNames[x.routeIndex], Tool: x.toolName, Status: x.status, Code: x.code, Took: took,
		RoundTrips: int(x.roundTrips.Load()), Remote: r.RemoteAddr, Trace: telemetry.ReadTrace(r.Header), Err: x.err}
	if x.admission != nil {
		l.Credential = x.credential()
	}
	l.LogTo(g.cfg.Requests, g.cfg.Log)
}

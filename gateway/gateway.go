// Package gateway serves the developer API: HTTP in, calls of the rooms behind it, HTTP out. It is the only package that
// knows HTTP, JSON wire types and problem documents.
//
// It owns no table. A request goes through ServeHTTP, front and one route of the table in routes.go:
//
//	request id → credential and rate limit → address or envelope → route → entitlement → scope → the route's handler
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/gateway/strictjson"
	"aiv/limits"
	"aiv/runs"
	"aiv/store"
)

// Base is the path of the gateway's one address.
const Base = "/external-api-v1"

// Config holds what a Gateway depends on.
type Config struct {
	Limits  *limits.Limiter // with catalog.RevisionSQL beside
	Runs    *runs.Runs
	Catalog *catalog.Catalog
	Reads   *pgxpool.Pool // for recommendations and alerts

	MaxReads   int // list and run reads that use the database at a time; the connections that are for them
	MaxWaiting int // further ones that may wait for their turn

	CursorSecret []byte // shared by all processes, so that a cursor holds at each of them

	Log      *slog.Logger
	Requests *RequestLog // nil: by Log
	NewID    func() store.ID
	Timeout  time.Duration // of what a handler waits for
	Delay    time.Duration // of the answer to who shows no valid key
	Metrics  *Metrics
}

// A Gateway is the handler of the public listener.
type Gateway struct {
	cfg     Config
	routes  *http.ServeMux
	logical sync.Pool // of *logicalCopy
	bodies  bodies
	readers *readers
}

// New returns a gateway.
func New(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg, readers: newReaders(cfg.MaxReads, cfg.MaxWaiting)}
	g.routes = g.newRoutes()
	return g
}

// exchange is one request with what has been found out about it, and the way to answer it. It is what the logical routes
// get as their http.ResponseWriter.
type exchange struct {
	http.ResponseWriter
	status    int
	requestID string
	route     *route // when it has been found
	place     int    // of the route in the table, or beyond it
	admission *limits.Admission
	params    parameters
	plain     bool              // asked for at its plain address
	envelope  *strictjson.Value // the body of an envelope; nil at a plain address
	code      string            // of the problem that it is answered with
	err       error             // what an internal error was, for the log
	trips     atomic.Int32      // to the database, that it waited for
	bodies    *bodies
	held      int // bytes of bodies

	values [10]string // of headers, so that they need no memory of their own
	used   int        // of values
}

func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// set sets a header whose name is written as it is to be sent.
func (x *exchange) set(name, value string) {
	if x.used == len(x.values) {
		x.Header()[name] = []string{value}
		return
	}
	place := x.values[x.used : x.used+1 : x.used+1]
	place[0] = value
	x.used++
	x.Header()[name] = place
}

// credential is whose request it is.
func (x *exchange) credential() *auth.Credential { return x.admission.Credential }

// ServeHTTP answers one request, whatever happens, and logs it.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := &exchange{ResponseWriter: w, requestID: g.cfg.NewID().Text("req"), place: len(routes), bodies: &g.bodies}
	x.set("X-Request-Id", x.requestID)
	defer func() {
		if x.held > 0 {
			x.bodies.take(x.credential().ID, -x.held)
		}
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			x.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			if x.status == 0 {
				x.problem(&problem.Problem{Code: problem.InternalError})
			}
		}
		g.record(r, x, time.Since(began))
	}()
	if err := g.front(x, r); err != nil {
		x.fail(err)
	}
}

// front takes a request to its logical route.
func (g *Gateway) front(x *exchange, r *http.Request) error {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), Base)
	if !ok || rest != "" && rest[0] != '/' {
		return &problem.Problem{Code: problem.RouteNotFound, Detail: "The API is served at " + Base + "."}
	}
	if d := documentAt(rest); d != nil {
		return d.serve(x, r)
	}
	if err := g.admit(x, r); err != nil {
		if x.admission == nil {
			g.delay(err)
		}
		return err
	}
	logical := logicalRequest{method: r.Method, path: rest}
	if rest == "" {
		var err error
		if logical, err = readAddress(x, r); err != nil {
			return err
		}
	} else {
		x.plain = true
		if err := x.params.parse(r.URL.RawQuery); err != nil {
			return err
		}
	}
	g.dispatch(x, r, logical)
	return nil
}

// admit finds the credential of a request and spends one request of its minute.
func (g *Gateway) admit(x *exchange, r *http.Request) error {
	key, err := bearer(r.Header)
	if err != nil {
		return err
	}
	// Not the client's context: the request is counted whether it waits or not, and the wait is bounded by the lane.
	x.trips.Add(1)
	a, err := g.cfg.Limits.Admit(context.Background(), key)
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

// delay has whoever shows no valid key wait for the answer. Who tries keys, as many as he can, has as many answers a second
// as he has connections, and not what the others' requests are to be served with.
func (g *Gateway) delay(err error) {
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.StatusCode() == http.StatusUnauthorized {
		time.Sleep(g.cfg.Delay)
	}
}

// bearer reads the key of a request. A key in the query string is never looked for.
func bearer(h http.Header) (key auth.Hash, err error) {
	sent := h["Authorization"]
	if len(sent) == 0 {
		return key, missingCredentials()
	}
	if len(sent) > 1 {
		return key, invalidKey()
	}
	scheme, token, _ := strings.Cut(sent[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return key, missingCredentials()
	}
	if key, err = auth.HashKey(token); err != nil {
		return key, invalidKey()
	}
	return key, nil
}

// deadline bounds what a handler waits for. It does not end with the client's context: net/http ends that when the client
// has ended its side of the connection, which may well still read [RFC 9112, 9.6], and a statement that is given up costs
// the pool its connection. So whoever leaves early gets, and costs, what everybody does.
//
// [RFC 9112, 9.6]: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
func (g *Gateway) deadline(x *exchange, r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(store.CountRoundTrips(context.WithoutCancel(r.Context()), &x.trips), g.cfg.Timeout)
}

// record counts and logs an answered request.
func (g *Gateway) record(r *http.Request, x *exchange, took time.Duration) {
	g.cfg.Metrics.answered(x.place, x.status, took)
	if x.err == nil && !g.cfg.Log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	a := answered{requestID: x.requestID, method: r.Method, route: routeNames[x.place], status: x.status, code: x.code, took: took,
		trips: int(x.trips.Load()), remote: r.RemoteAddr, trace: traceOf(r.Header), err: x.err}
	if x.admission != nil {
		a.credential = x.credential()
	}
	if g.cfg.Requests == nil || x.err != nil {
		a.log(g.cfg.Log)
		return
	}
	g.cfg.Requests.line(&a)
}

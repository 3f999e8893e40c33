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
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
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
	Pool    *pgxpool.Pool // where insights are

	CursorSecret []byte // shared by all processes, so that a cursor holds at each of them

	Log     *slog.Logger
	NewID   func() store.ID
	Timeout time.Duration // of what a handler waits for
	Metrics *Metrics
}

// A Gateway is the handler of the public listener.
type Gateway struct {
	cfg    Config
	routes *http.ServeMux
}

// New returns a gateway.
func New(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg}
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
	admission *limits.Admission
	params    parameters
	plain     bool   // asked for at its plain address
	envelope  *value // the body of an envelope; nil at a plain address
	err       error  // what an internal error was, for the log
}

func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// credential is whose request it is.
func (x *exchange) credential() *auth.Credential { return x.admission.Credential }

// ServeHTTP answers one request, whatever happens, and logs it.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := &exchange{ResponseWriter: w, requestID: g.cfg.NewID().Text("req")}
	header(w, "X-Request-Id", x.requestID)
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			x.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			if x.status == 0 {
				x.problem(&problem{code: codeInternalError})
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
		return &problem{code: codeRouteNotFound, detail: "The API is served at " + Base + "."}
	}
	if err := g.admit(x, r); err != nil {
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
	a, err := g.cfg.Limits.Admit(r.Context(), key)
	if errors.Is(err, limits.ErrUnknownKey) {
		return invalidKey()
	}
	if err != nil {
		return err
	}
	x.admission = a
	setLimitHeaders(x.Header(), &a.Window)
	if !a.Admitted {
		return limitExceeded(&a.Window)
	}
	return nil
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

// deadline bounds what a handler waits for.
func (g *Gateway) deadline(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), g.cfg.Timeout)
}

// record logs and counts an answered request. What a client may have put a key into (its address) is not logged.
func (g *Gateway) record(r *http.Request, x *exchange, took time.Duration) {
	route := "none"
	if x.route != nil {
		route = x.route.name()
	}
	g.cfg.Metrics.answered(route, x.status, took)
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("request_id", x.requestID), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("status", x.status), slog.Int64("us", took.Microseconds()), slog.String("remote", r.RemoteAddr))
	if x.admission != nil {
		attrs = append(attrs, slog.String("credential", x.credential().ID.Text("cred")))
	}
	level := slog.LevelInfo
	if x.err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", x.err.Error()))
	}
	g.cfg.Log.LogAttrs(context.Background(), level, "request", attrs...)
}

package telemetry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"aiv/auth"
	"aiv/store"
)

// Request is what the log contains about a request. The URL is left out, because a client may put a key into it, and so
// is a method that is not a standard one.
type Request struct {
	ID         string
	Method     string
	Route      string
	Tool       string // that an assistant called; empty: none
	Status     int
	Code       string // of a problem
	Took       time.Duration
	RoundTrips int // round trips to the database that the request waited for, shared ones included
	Remote     string
	Trace      Trace
	Credential *auth.Credential // nil: not authenticated, or a worker
	Worker     *auth.Worker     // nil: not authenticated, or a client of the public API
	Err        error            // the cause of an internal error
}

// LogTo logs the request: to own, or to log if own is nil or the request is an internal error. It logs nothing if log's
// level excludes the request.
func (r *Request) LogTo(own *LogWriter, log *slog.Logger) {
	switch {
	case r.Err == nil && !log.Enabled(context.Background(), slog.LevelInfo):
	case own == nil || r.Err != nil:
		r.log(log)
	default:
		own.append(r.append)
	}
}

// method returns the standard method of the request, or "other".
func (r *Request) method() string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return "other"
}

// append appends a line of JSON, like slog's JSON handler, but with microseconds, and about five times as fast.
func (r *Request) append(b []byte) []byte {
	// Ids and the names of routes and tools do not come from the client, and need no escapes.
	b = append(b, `{"time":"`...)
	b = store.AppendTime(b, time.Now())
	b = append(b, `","level":"INFO","msg":"request","request_id":"`...)
	b = append(b, r.ID...)
	b = append(b, `","method":`...)
	b = appendQuoted(b, r.method())
	b = append(b, `,"route":"`...)
	b = append(b, r.Route...)
	if r.Tool != "" {
		b = append(b, `","tool":"`...)
		b = append(b, r.Tool...)
	}
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(r.Status), 10)
	b = append(b, `,"us":`...)
	b = strconv.AppendInt(b, r.Took.Microseconds(), 10)
	b = append(b, `,"round_trips":`...)
	b = strconv.AppendInt(b, int64(r.RoundTrips), 10)
	if r.Code != "" {
		b = append(b, `,"code":`...)
		b = appendQuoted(b, r.Code)
	}
	b = append(b, `,"remote":`...)
	b = appendQuoted(b, r.Remote)
	if r.Credential != nil {
		b = append(b, `,"account":"`...)
		b = r.Credential.AccountID.AppendText(b, "acct")
		b = append(b, `","credential":"`...)
		b = r.Credential.ID.AppendText(b, "cred")
		b = append(b, '"')
	}
	if r.Worker != nil {
		b = append(b, `,"worker":"`...)
		b = r.Worker.ID.AppendText(b, "wrk")
		b = append(b, '"')
	}
	if r.Trace.ID != "" {
		b = append(b, `,"trace_id":"`...)
		b = append(b, r.Trace.ID...) // hexadecimal
		b = append(b, `","parent_id":"`...)
		b = append(b, r.Trace.Parent...)
		b = append(b, '"')
	}
	return append(b, "}\n"...)
}

// appendQuoted appends s as a JSON string. Almost all strings are printable ASCII and need no escapes.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // never fails for a string
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// log writes the same line with slog, and the error.
func (r *Request) log(to *slog.Logger) {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("request_id", r.ID), slog.String("method", r.method()), slog.String("route", r.Route),
		slog.Int("status", r.Status), slog.Int64("us", r.Took.Microseconds()), slog.Int("round_trips", r.RoundTrips))
	if r.Tool != "" {
		attrs = append(attrs, slog.String("tool", r.Tool))
	}
	if r.Code != "" {
		attrs = append(attrs, slog.String("code", r.Code))
	}
	attrs = append(attrs, slog.String("remote", r.Remote))
	if r.Credential != nil {
		attrs = append(attrs, slog.String("account", r.Credential.AccountID.Text("acct")), slog.String("credential", r.Credential.ID.Text("cred")))
	}
	if r.Worker != nil {
		attrs = append(attrs, slog.String("worker", r.Worker.ID.Text("wrk")))
	}
	if r.Trace.ID != "" {
		attrs = append(attrs, slog.String("trace_id", r.Trace.ID), slog.String("parent_id", r.Trace.Parent))
	}
	// A request with an error is logged at LevelError, even if the log excludes LevelInfo.
	level := slog.LevelInfo
	if r.Err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	to.LogAttrs(context.Background(), level, "request", attrs...)
}

package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"aiv/auth"
)

// A RequestLog writes a line of JSON for each request, in the form of slog's JSON handler, which takes several times as
// long (BenchmarkRequestLog).
type RequestLog struct{ w *LogWriter }

// NewRequestLog returns a log to w.
func NewRequestLog(w *LogWriter) *RequestLog { return &RequestLog{w} }

func (l *RequestLog) line(a *answered) { l.w.append(a.append) }

// answered is what the log contains about a request. The address is left out, because a client may put a key into it.
type answered struct {
	requestID  string
	method     string
	route      string
	status     int
	code       string // of a problem
	took       time.Duration
	roundTrips int // round trips to the database that the request waited for, shared ones included
	remote     string
	trace      trace
	credential *auth.Credential
	err        error // the cause of an internal error
}

func (a *answered) append(b []byte) []byte {
	b = append(b, `{"time":"`...)
	b = time.Now().UTC().AppendFormat(b, timeFormat)
	b = append(b, `","level":"INFO","msg":"request","request_id":"`...)
	b = append(b, a.requestID...)
	b = append(b, `","method":`...)
	b = appendQuoted(b, a.method)
	b = append(b, `,"route":"`...)
	b = append(b, a.route...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(b, `,"us":`...)
	b = strconv.AppendInt(b, a.took.Microseconds(), 10)
	b = append(b, `,"trips":`...)
	b = strconv.AppendInt(b, int64(a.roundTrips), 10)
	if a.code != "" {
		b = append(b, `,"code":`...)
		b = appendQuoted(b, a.code)
	}
	b = append(b, `,"remote":`...)
	b = appendQuoted(b, a.remote)
	if a.credential != nil {
		b = append(b, `,"account":"`...)
		b = a.credential.AccountID.AppendText(b, "acct")
		b = append(b, `","credential":"`...)
		b = a.credential.ID.AppendText(b, "cred")
		b = append(b, '"')
	}
	if a.trace.id != "" {
		b = append(b, `,"trace_id":"`...)
		b = append(b, a.trace.id...) // hexadecimal
		b = append(b, `","parent_id":"`...)
		b = append(b, a.trace.parent...)
		b = append(b, '"')
	}
	return append(b, "}\n"...)
}

// appendQuoted appends s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // never fails for a string
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// log writes the same with slog: on a terminal, and for internal errors.
func (a *answered) log(to *slog.Logger) {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("request_id", a.requestID), slog.String("method", a.method), slog.String("route", a.route),
		slog.Int("status", a.status), slog.Int64("us", a.took.Microseconds()), slog.Int("trips", a.roundTrips))
	if a.code != "" {
		attrs = append(attrs, slog.String("code", a.code))
	}
	attrs = append(attrs, slog.String("remote", a.remote))
	if a.credential != nil {
		attrs = append(attrs, slog.String("account", a.credential.AccountID.Text("acct")), slog.String("credential", a.credential.ID.Text("cred")))
	}
	if a.trace.id != "" {
		attrs = append(attrs, slog.String("trace_id", a.trace.id), slog.String("parent_id", a.trace.parent))
	}
	level := slog.LevelInfo
	if a.err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", a.err.Error()))
	}
	to.LogAttrs(context.Background(), level, "request", attrs...)
}

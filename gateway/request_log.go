package gateway

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"aiv/auth"
)

// A RequestLog writes a line of JSON for each request, in the form of slog's JSON handler. A line costs its own text; many
// go out in one write, as soon as the write before has ended.
type RequestLog struct {
	w io.Writer

	mu      sync.Mutex
	lines   []byte // not written yet
	spare   []byte // the buffer of the last write
	writing bool
	idle    *sync.Cond // no write is under way
}

// maxUnwritten is how many bytes of lines may wait; then requests wait for the writer.
const maxUnwritten = 1 << 20

// NewRequestLog returns a log to w.
func NewRequestLog(w io.Writer) *RequestLog {
	l := &RequestLog{w: w}
	l.idle = sync.NewCond(&l.mu)
	return l
}

// line logs a request.
func (l *RequestLog) line(a *answered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > maxUnwritten {
		l.idle.Wait()
	}
	l.lines = a.append(l.lines)
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

func (l *RequestLog) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > 0 {
		out := l.lines
		l.lines = l.spare[:0]
		l.mu.Unlock()
		l.w.Write(out) // a log that can't be written can't be told of either
		l.mu.Lock()
		l.spare = out
		l.idle.Broadcast()
	}
	l.writing = false
	l.idle.Broadcast()
}

// Close waits until all lines are written.
func (l *RequestLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing {
		l.idle.Wait()
	}
}

// answered is what the log tells of a request. What a client may have put a key into (its address) is not there.
type answered struct {
	requestID  string
	method     string
	route      string
	status     int
	code       string // of a problem
	took       time.Duration
	trips      int // to the database, that it waited for, however many requests shared them
	remote     string
	trace      trace
	credential *auth.Credential
	err        error // that the client was not told of
}

func (a *answered) append(b []byte) []byte {
	b = append(b, `{"time":"`...)
	b = time.Now().UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, `","level":"INFO","msg":"request","request_id":"`...)
	b = append(b, a.requestID...)
	b = append(b, `","method":`...)
	b = strconv.AppendQuoteToASCII(b, a.method) // net/http lets only tokens pass
	b = append(b, `,"route":"`...)
	b = append(b, a.route...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(b, `,"us":`...)
	b = strconv.AppendInt(b, a.took.Microseconds(), 10)
	b = append(b, `,"trips":`...)
	b = strconv.AppendInt(b, int64(a.trips), 10)
	if a.code != "" {
		b = append(b, `,"code":`...)
		b = strconv.AppendQuoteToASCII(b, a.code)
	}
	b = append(b, `,"remote":"`...)
	b = append(b, a.remote...)
	if a.credential != nil {
		b = append(b, `","account":"`...)
		b = a.credential.AccountID.AppendText(b, "acct")
		b = append(b, `","credential":"`...)
		b = a.credential.ID.AppendText(b, "cred")
	}
	if a.trace.id != "" {
		b = append(b, `","trace_id":"`...)
		b = append(b, a.trace.id...)
		b = append(b, `","parent_id":"`...)
		b = append(b, a.trace.parent...)
	}
	return append(b, "\"}\n"...)
}

// log writes the same by slog, for people and for errors.
func (a *answered) log(to *slog.Logger) {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("request_id", a.requestID), slog.String("method", a.method), slog.String("route", a.route),
		slog.Int("status", a.status), slog.Int64("us", a.took.Microseconds()), slog.Int("trips", a.trips))
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

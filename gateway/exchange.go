package gateway

import (
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/limits"
)

// An exchange is one request and its response. It is the http.ResponseWriter of the logical routes.
type exchange struct {
	requestID string
	admission *limits.Admission
	logicalRequest
	route      *route       // nil until it is found
	routeIndex int          // in routes; len(routes): none
	routed     http.Request // the request as the route sees it; allocated with the exchange
	routedURL  url.URL
	roundTrips atomic.Int32 // to the database that the request waited for

	bodies *share
	held   int // bytes taken from bodies

	http.ResponseWriter
	status int
	code   string // of the problem in the response
	err    error  // the cause of an internal error, for the log

	// Values of headers, which would otherwise need an allocation each: 5 % of the processor time of GET /v1/me.
	values [10]string
	used   int // of values
}

func (x *exchange) credential() *auth.Credential { return x.admission.Credential }

// WriteHeader records the status.
func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// set sets a header without changing the case of its name.
func (x *exchange) set(name, value string) {
	if x.used == len(x.values) {
		x.Header()[name] = []string{value}
		return
	}
	x.values[x.used] = value
	x.used++
	x.Header()[name] = x.values[x.used-1 : x.used : x.used]
}

// maxBuffered is the size of a body up to which net/http sets Content-Length itself. Another header would be the ninth of most
// responses, for which a map of headers needs a table: 3 % of the processor time of GET /v1/me.
const maxBuffered = 2048

// write sends a response.
func (x *exchange) write(status int, mediaType string, body []byte) {
	x.set("Content-Type", mediaType)
	if x.Header()["Cache-Control"] == nil {
		x.set("Cache-Control", "no-store")
	}
	if len(body) > maxBuffered {
		x.set("Content-Length", strconv.Itoa(len(body)))
	}
	x.WriteHeader(status)
	x.Write(body) // an error means that the client has disconnected
}

// writeNothing sends a response without a body.
func (x *exchange) writeNothing() {
	x.set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
}

// problem sends a problem as the response.
func (x *exchange) problem(p *problem.Problem) {
	x.code = p.Code
	problems.Write(x, p, x.requestID)
}

// setLimitHeaders sets the state of the credential's window in the form of draft-ietf-httpapi-ratelimit-headers and in
// GitHub's form, which more clients know. The names keep the case of those documents.
func (x *exchange) setLimitHeaders(w *limits.Window) {
	const quota, rest = `"minute";q=`, `"minute";r=`
	// All values are parts of one string, so that they need one allocation.
	b := strconv.AppendInt(append(make([]byte, 0, 128), quota...), int64(w.Limit), 10)
	limit := len(b)
	b = append(b, ";w=60"...)
	policy := len(b)
	b = strconv.AppendInt(append(b, rest...), int64(w.Remaining), 10)
	remaining := len(b)
	b = strconv.AppendInt(append(b, ";t="...), int64(secondsLeft(w)), 10)
	state := len(b)
	all := string(strconv.AppendInt(b, w.End.Unix(), 10))
	x.set("RateLimit-Policy", all[:policy])
	x.set("RateLimit", all[policy:state])
	x.set("X-RateLimit-Limit", all[len(quota):limit])
	x.set("X-RateLimit-Remaining", all[policy+len(rest):remaining])
	x.set("X-RateLimit-Reset", all[state:])
}

// secondsLeft returns the seconds to the end of the window, rounded up, and at least 1.
func secondsLeft(w *limits.Window) int {
	return max(1, int((w.Left+time.Second-1)/time.Second))
}

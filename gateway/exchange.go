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
	admission *limits.Admission // nil until the key is found
	logicalRequest
	route      *route       // nil until it is found
	routeIndex int          // in routeNames
	routed     http.Request // the request as the route sees it; allocated with the exchange
	routedURL  url.URL
	roundTrips atomic.Int32 // round trips to the database for which the request waited
	early      *earlyRead   // that the response has not used; nil: none

	bodies *share
	held   int // bytes taken from bodies

	// A call of a tool has an exchange of its own, besides the exchange of the message that contains it.
	tool     *toolCall // of a call of a tool; nil: a request
	toolName string    // the tool that a request called

	http.ResponseWriter
	status int    // 0: no response has begun
	code   string // of the problem in the response
	err    error  // the cause of an internal error, for the log
}

func (x *exchange) credential() *auth.Credential { return x.admission.Credential }

// WriteHeader records the status. Handlers must call it before Write, which would leave the status at 0.
func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// set sets a header without changing the case of its name.
func (x *exchange) set(name, value string) { x.Header()[name] = []string{value} }

// maxBuffered is the size of a body up to which net/http sets Content-Length itself. Set here, it would be the ninth
// header of most responses, and a map of nine entries needs a table: 3 % of the processor time of GET /v1/me.
const maxBuffered = 2048

// write sends a response. A header Cache-Control that is set already stays.
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

// problem sends a problem as the response. The problem of a tool's call becomes part of its result.
func (x *exchange) problem(p *problem.Problem) {
	x.code = p.Code
	if x.tool != nil {
		x.tool.problem = p
		return
	}
	problems.Write(x, p, x.requestID)
}

// setLimitHeaders sets the state of the credential's window in the form of draft-ietf-httpapi-ratelimit-headers and in
// GitHub's form, which more clients know. The names keep the case of those documents.
func (x *exchange) setLimitHeaders(w *limits.Window) {
	limit, remaining := strconv.Itoa(w.Limit), strconv.Itoa(w.Remaining)
	x.set("RateLimit-Policy", `"minute";q=`+limit+`;w=60`)
	x.set("RateLimit", `"minute";r=`+remaining+`;t=`+strconv.Itoa(secondsLeft(w)))
	x.set("X-RateLimit-Limit", limit)
	x.set("X-RateLimit-Remaining", remaining)
	x.set("X-RateLimit-Reset", strconv.FormatInt(w.End.Unix(), 10))
}

// secondsLeft returns the seconds to the end of the window, rounded up, and at least 1.
func secondsLeft(w *limits.Window) int {
	return max(1, int((w.Left+time.Second-1)/time.Second))
}

package gateway

import (
	"strconv"
	"time"

	"aiv/limits"
)

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

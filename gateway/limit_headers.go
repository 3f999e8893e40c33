package gateway

import (
	"net/http"
	"strconv"
	"time"

	"aiv/limits"
)

// setLimitHeaders tells the state of the credential's minute twice: as draft-ietf-httpapi-ratelimit-headers has it, and by
// the names that GitHub's clients know. They are spelled as their documents do, which is not net/http's canonical form.
func setLimitHeaders(h http.Header, w *limits.Window) {
	limit, remaining := strconv.Itoa(w.Limit), strconv.Itoa(w.Remaining)
	h["RateLimit-Policy"] = []string{`"minute";q=` + limit + `;w=60`}
	h["RateLimit"] = []string{`"minute";r=` + remaining + `;t=` + strconv.Itoa(secondsLeft(w))}
	h["X-RateLimit-Limit"] = []string{limit}
	h["X-RateLimit-Remaining"] = []string{remaining}
	h["X-RateLimit-Reset"] = []string{strconv.FormatInt(w.End.Unix(), 10)}
}

// secondsLeft is never short of the window's end and never below 1.
func secondsLeft(w *limits.Window) int {
	return max(1, int((w.Left+time.Second-1)/time.Second))
}

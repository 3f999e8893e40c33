package gateway

import (
	"strconv"
	"sync/atomic"
	"time"

	"aiv/limits"
)

// setLimitHeaders tells the state of the credential's minute twice: as draft-ietf-httpapi-ratelimit-headers has it, and by
// the names that GitHub's clients know. They are spelled as their documents do, which is not net/http's canonical form.
//
// All five are cut from one text.
func (x *exchange) setLimitHeaders(w *limits.Window) {
	var buffer [128]byte
	b := append(buffer[:0], `"minute";q=`...)
	limit := len(b)
	b = strconv.AppendInt(b, int64(w.Limit), 10)
	limitEnd := len(b)
	b = append(b, `;w=60`...)
	state := len(b)
	b = append(b, `"minute";r=`...)
	remaining := len(b)
	b = strconv.AppendInt(b, int64(w.Remaining), 10)
	remainingEnd := len(b)
	b = append(b, `;t=`...)
	b = strconv.AppendInt(b, int64(secondsLeft(w)), 10)
	text := string(b)

	x.set("RateLimit-Policy", text[:state])
	x.set("RateLimit", text[state:])
	x.set("X-RateLimit-Limit", text[limit:limitEnd])
	x.set("X-RateLimit-Remaining", text[remaining:remainingEnd])
	x.set("X-RateLimit-Reset", resetText(w.End.Unix()))
}

// lastReset is the text of the reset time told last, which is the same for everybody for a minute.
var lastReset atomic.Pointer[resetTime]

type resetTime struct {
	unix int64
	text string
}

func resetText(unix int64) string {
	if r := lastReset.Load(); r != nil && r.unix == unix {
		return r.text
	}
	r := &resetTime{unix, strconv.FormatInt(unix, 10)}
	lastReset.Store(r)
	return r.text
}

// secondsLeft is never short of the window's end and never below 1.
func secondsLeft(w *limits.Window) int {
	return max(1, int((w.Left+time.Second-1)/time.Second))
}

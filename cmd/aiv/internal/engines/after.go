package engines

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter returns for how long an API asks not to be called, or 0. body is the body of an error, or empty.
//
// Times are compared with the response's own Date, so that a wrong clock of this machine changes no wait.
func retryAfter(engine string, h http.Header, e *apiError) time.Duration {
	// This header is in milliseconds, and so more precise than the standard one.
	if s, ok := number(h.Get("Retry-After-Ms")); ok {
		return bounded(s / 1000)
	}
	if text := h.Get("Retry-After"); text != "" {
		if s, ok := number(text); ok {
			return bounded(s)
		}
		until, err := http.ParseTime(text)
		if date, ok := dateOf(h); ok && err == nil {
			return bounded(until.Sub(date).Seconds())
		}
	}
	if engine == "gemini" && e != nil {
		if d := e.googleDelay(); d > 0 {
			return d
		}
	}
	return exhausted(h)
}

// googleDelay returns what the details of an error ask for, or 0. A quota of a day is looked at again after an hour.
func (e *apiError) googleDelay() time.Duration {
	if e.violation(func(v value) bool { return strings.Contains(v.at("quotaId").text(), "PerDay") }) {
		return time.Hour
	}
	for _, d := range e.body.at("error", "details").list() {
		if s, ok := strings.CutSuffix(d.at("retryDelay").text(), "s"); ok {
			if n, ok := number(s); ok {
				return bounded(n)
			}
		}
	}
	return 0
}

// exhausted returns when the latest of the limits whose remaining is 0 is reset, or 0.
func exhausted(h http.Header) (latest time.Duration) {
	for name := range h {
		name = strings.ToLower(name)
		if !strings.Contains(name, "-remaining") || strings.TrimSpace(h.Get(name)) != "0" {
			continue
		}
		var wait time.Duration
		// For OpenAI, the reset is a duration such as 6m0s.
		if limit, ok := strings.CutPrefix(name, "x-ratelimit-remaining-"); ok && (limit == "requests" || limit == "tokens") {
			d, err := time.ParseDuration(strings.TrimSpace(h.Get("x-ratelimit-reset-" + limit)))
			if err != nil {
				continue
			}
			wait = bounded(d.Seconds())
		}
		// For Anthropic, the reset is an RFC 3339 time.
		if limit, ok := strings.CutSuffix(name, "-remaining"); ok && strings.HasPrefix(name, "anthropic-ratelimit-") {
			at, err := time.Parse(time.RFC3339, strings.TrimSpace(h.Get(limit+"-reset")))
			date, ok := dateOf(h)
			if err != nil || !ok {
				continue
			}
			wait = bounded(at.Sub(date).Seconds())
		}
		latest = max(latest, wait)
	}
	return latest
}

// dateOf returns the Date of a response, and whether it is valid.
func dateOf(h http.Header) (time.Time, bool) {
	t, err := http.ParseTime(h.Get("Date"))
	return t, err == nil
}

// number reads a decimal number from 0 on.
func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 0) // and is not NaN
}

// bounded returns seconds as the worker interface takes them: whole, rounded up, 1 to 3600.
func bounded(seconds float64) time.Duration {
	return time.Duration(min(max(math.Ceil(seconds), 1), 3600)) * time.Second
}

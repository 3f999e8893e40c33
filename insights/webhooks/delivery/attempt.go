package delivery

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aiv/insights/webhooks"
)

const (
	attemptTimeout = 15 * time.Second // from resolution to the response's header
	drainTimeout   = time.Second      // for the response's body, which is read only to keep the connection
	maxDrain       = 16 << 10
	maxHeader      = 16 << 10

	// maxIdle is less than the 5 s after which common servers, such as Node.js and Apache, close idle connections. An
	// attempt that is sent while the receiver closes the connection fails, because the receiver may have read it.
	maxIdle = 4 * time.Second
)

// A result is the outcome of one attempt.
type result struct {
	status     int           // of the response; 0: there was none
	err        string        // "": delivered
	retryAfter time.Duration // not positive: there was none
}

// A sender makes attempts.
type sender struct {
	transport      *http.Transport
	timeout, drain time.Duration
}

// newSender returns a sender that connects with a restrictedDialer and keeps idle connections. It uses no proxy, stores
// no cookies and follows no redirects.
func newSender(dialer *restrictedDialer, idle int) *sender {
	return &sender{timeout: attemptTimeout, drain: drainTimeout, transport: &http.Transport{
		DialContext:            counting(dialer.DialContext),
		DialTLSContext:         counting(dialer.DialTLSContext),
		DisableCompression:     true,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        maxIdle,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         2 << 10,
		WriteBufferSize:        2 << 10,
	}}
}

// send makes one attempt, which is one request. It returns when the response's header or an error is known and the
// connection is free again.
func (s *sender) send(ctx context.Context, url string, header http.Header, body []byte) result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(s.timeout, cancel)
	defer timer.Stop()

	response, err := s.post(ctx, url, header, body)
	if err != nil {
		return result{err: classify(ctx, err)}
	}
	defer response.Body.Close()
	if !timer.Reset(s.drain) { // the response came too late
		return result{err: webhooks.ErrorTimeout}
	}
	if response.StatusCode < 100 { // the transport accepts it, HTTP and the schema do not
		return result{err: webhooks.ErrorConnection}
	}
	if response.StatusCode != http.StatusSwitchingProtocols { // its body is the connection, which ctx no longer closes
		io.CopyN(io.Discard, response.Body, maxDrain)
	}

	r := result{status: response.StatusCode, retryAfter: retryAfter(response.Header.Get("Retry-After"))}
	switch {
	case r.status/100 == 2:
	case r.status/100 == 3:
		r.err = webhooks.ErrorRedirect
	default:
		r.err = webhooks.ErrorStatus
	}
	return r
}

// classify maps an error of the transport to a value of LastError.
func classify(ctx context.Context, err error) string {
	if errors.Is(err, errBlocked) {
		return webhooks.ErrorBlocked
	}
	if e, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && e.Timeout() {
		return webhooks.ErrorTimeout
	}
	if _, ok := errors.AsType[*tlsError](err); ok || strings.Contains(err.Error(), "tls: ") {
		return webhooks.ErrorTLS
	}
	return webhooks.ErrorConnection
}

// retryAfter reads a Retry-After header: seconds or a date. Values beyond a day count as a day.
func retryAfter(text string) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) { // with the largest number
		after = time.Duration(min(seconds, 86400)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = time.Until(at)
	}
	return min(after, 24*time.Hour)
}

// schedule has the delays after failed attempts, from the first on. There is no further attempt after the last.
var schedule = [...]time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
	14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

// A failed attempt disables an endpoint whose attempts have been failing for failingPeriod, without a success.
const failingPeriod = 3 * 24 * time.Hour

// nextDelay returns when to retry after the nth attempt failed with r: by the schedule, changed at random by up to 20 %
// so that deliveries that failed together are not retried together, or after the receiver's Retry-After, whichever is
// later.
func nextDelay(attempt int, r result) (time.Duration, bool) {
	if attempt > len(schedule) {
		return 0, false
	}
	delay := schedule[attempt-1]
	delay += time.Duration((rand.Float64()*0.4 - 0.2) * float64(delay))
	return max(delay, r.retryAfter), true
}

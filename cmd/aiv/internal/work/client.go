package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// A client calls the worker interface.
type client struct {
	base, token string
	http        http.Client
}

// newClient returns a client that uses HTTP/1.1 only: a request that times out closes its connection. Over HTTP/2,
// which a proxy may offer, later requests would use a connection that the network has dropped without a sign, for
// minutes. The client has no timeout of its own: each call has one.
func newClient(url, token string) *client {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &client{base: strings.TrimRight(url, "/") + "/worker/v1", token: token, http: http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: callTime}).DialContext, // dialing outlives the request
			TLSHandshakeTimeout: callTime,
			IdleConnTimeout:     90 * time.Second,
			Protocols:           &http1,
		},
		// A redirect to another port or a subdomain would get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxResponse is more than 500 jobs take.
const maxResponse = 64 << 20

// call sends a request and reads the jobs of the response into out. It returns a *statusError if the status is not 200.
func (c *client) call(ctx context.Context, timeout time.Duration, route string, body any, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+route, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		e := &statusError{route: route, status: response.StatusCode}
		json.Unmarshal(read, &e.problem) // the body may be a proxy's
		return e
	}
	var answered struct{ Jobs *json.RawMessage }
	if err = json.Unmarshal(read, &answered); err == nil {
		if answered.Jobs == nil { // from another server: an empty claim would be repeated at once
			return fmt.Errorf("the response of %s has no list of jobs; check -url and proxies", route)
		}
		err = json.Unmarshal(*answered.Jobs, out)
	}
	if err != nil {
		return fmt.Errorf("the response of %s is invalid: %w", route, err)
	}
	return nil
}

// A statusError is a response that refuses a request.
type statusError struct {
	route   string
	status  int
	problem struct {
		Code   string
		Detail string
		Errors []struct{ Pointer, Detail string }
	}
}

// Error distinguishes a refusal by the dispatcher from the response of a proxy, which has no problem code.
func (e *statusError) Error() string {
	if e.problem.Code == "" {
		return fmt.Sprintf("%s returned status %d with a body that is not from aiv dispatch; check -url and proxies", e.route, e.status)
	}
	text := fmt.Sprintf("the dispatcher refused %s with %d %s: %s", e.route, e.status, e.problem.Code, e.problem.Detail)
	for _, f := range e.problem.Errors {
		text += "; " + f.Pointer + " " + f.Detail
	}
	return text
}

// faults describes what is wrong with an answer that was sent alone.
func (e *statusError) faults() string {
	if len(e.problem.Errors) == 0 {
		return e.problem.Detail
	}
	var faults []string
	for _, f := range e.problem.Errors {
		member := strings.TrimPrefix(strings.TrimPrefix(f.Pointer, "#/jobs/0/"), "answer/")
		faults = append(faults, member+" "+f.Detail)
	}
	return strings.Join(faults, "; ")
}

// temporary reports whether the same request may succeed later.
func (e *statusError) temporary() bool {
	return e.status >= 500 || e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout
}

// isUnavailable reports whether the dispatcher has refused a request because it cannot use its database, or a server of
// the cluster that has a part of what the request is about.
func isUnavailable(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.problem.Code == "unavailable"
}

// A backoff waits longer with each failure, up to 5 s.
type backoff struct{ last time.Duration }

// sleep returns early when ctx is done.
func (b *backoff) sleep(ctx context.Context) {
	// The wait is a random time from half of b.last to b.last, so that workers that failed together do not retry
	// together.
	b.last = min(max(2*b.last, 100*time.Millisecond), 5*time.Second)
	t := time.NewTimer(b.last/2 + rand.N(b.last/2))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

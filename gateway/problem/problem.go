// Package problem defines the error responses of the HTTP interfaces: problem documents [RFC 9457], their codes,
// statuses and titles. It serves gateway and gateway/worker, and knows nothing of their routes.
//
// [RFC 9457]: https://www.rfc-editor.org/rfc/rfc9457
package problem

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"aiv/gateway/wire"
	"aiv/store"
	"aiv/store/batch"
)

// A Problem is an error that is reported to a client. Only Code is required.
type Problem struct {
	Code   string
	Title  string // default: the code's
	Detail string
	Errors Faults
	Check  string // the run check that rejected the run

	ExistingID string // the id of the object that conflicts with the request

	Header           http.Header // sent along, such as Allow
	Type             string      // URI; default: the code's section of the reference
	ViolatedPolicies []string    // of the rate limit
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Document is the wire form of a problem.
type Document struct {
	Type             string   `json:"type"`
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Code             string   `json:"code"`
	Detail           string   `json:"detail"`
	RequestID        string   `json:"request_id"`
	Check            string   `json:"check,omitempty"`
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
	ExistingID       string   `json:"existing_id,omitempty"`
	Errors           Faults   `json:"errors,omitempty"`
}

// An API is an interface that reports problems.
type API struct {
	Reference string // address of the reference, which has a section for each code
	Realm     string // of WWW-Authenticate
}

// Write sends the problem as the response. It removes the headers that apply to successful responses only.
func (a API) Write(w http.ResponseWriter, p *Problem, requestID string) {
	d := Document{Type: cmp.Or(p.Type, a.Reference+"#"+p.Code), Title: cmp.Or(p.Title, kindOf(p.Code).Title), Status: p.StatusCode(),
		Code: p.Code, Detail: p.Detail, RequestID: requestID, Check: p.Check, ViolatedPolicies: p.ViolatedPolicies, ExistingID: p.ExistingID,
		Errors: p.Errors}
	body := wire.Encode(d)

	h := w.Header()
	for _, name := range []string{"ETag", "Link", "Location", "Vary"} {
		delete(h, name)
	}
	maps.Copy(h, p.Header)
	h["Content-Type"] = []string{"application/problem+json"}
	h["Cache-Control"] = []string{"no-store"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(d.Status)
	w.Write(body) // an error means that the client has disconnected
}

// Of returns the problem for an error of the packages behind an interface: overloaded, unavailable, or else internal.
// It does not contain the text of the error.
func Of(err error) *Problem {
	switch {
	case errors.Is(err, batch.ErrOverloaded):
		return &Problem{Code: Overloaded, Header: Retry(1), Detail: "Too many requests are waiting. Retry after the time in Retry-After."}
	case store.IsUnavailable(err):
		return &Problem{Code: Unavailable, Header: Retry(1),
			Detail: "The service is temporarily unavailable. Retry after the time in Retry-After."}
	}
	return &Problem{Code: InternalError, Detail: "The error was logged under this request id."}
}

// MissingCredentials reports a request without a key.
func (a API) MissingCredentials(detail string) *Problem {
	return &Problem{Code: MissingCredentials, Detail: detail, Header: a.challenge("")}
}

// InvalidKey reports a key that is malformed, unknown, expired, disabled or revoked, without revealing which.
func (a API) InvalidKey(detail string) *Problem {
	return &Problem{Code: InvalidAPIKey, Detail: detail, Header: a.challenge(`, error="invalid_token"`)}
}

// InsufficientScope reports a credential that has none of the scopes [RFC 6750, 3.1].
func (a API) InsufficientScope(detail string, scopes []string) *Problem {
	return &Problem{Code: InsufficientScope, Detail: detail,
		Header: a.challenge(`, error="insufficient_scope", scope="` + strings.Join(scopes, " ") + `"`)}
}

func (a API) challenge(parameters string) http.Header {
	return http.Header{"WWW-Authenticate": {`Bearer realm="` + a.Realm + `"` + parameters}}
}

// IsUnauthorized reports whether err is a problem of status 401.
func IsUnauthorized(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.StatusCode() == http.StatusUnauthorized
}

// NotAllowed reports a method that the route does not have. allow lists the methods it has.
func NotAllowed(allow, detail string) *Problem {
	return &Problem{Code: MethodNotAllowed, Detail: detail, Header: http.Header{"Allow": {allow}}}
}

// Retry returns the header of a problem after which the client should send the same request again.
func Retry(seconds int) http.Header { return http.Header{"Retry-After": {strconv.Itoa(seconds)}} }

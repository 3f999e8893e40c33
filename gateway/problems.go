package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aiv/limits"
	"aiv/runs"
	"aiv/store"
	"aiv/store/batch"
)

// The codes that the gateway gives by itself: the stable words that a client switches on. Run checks bring their own.
const (
	codeInvalidJSON           = "invalid_json"
	codeInvalidEnvelope       = "invalid_envelope"
	codeInvalidRequest        = "invalid_request"
	codeInvalidParameter      = "invalid_parameter"
	codeIdempotencyKeyMissing = "idempotency_key_missing"
	codeIdempotencyKeyInvalid = "idempotency_key_invalid"
	codeMissingCredentials    = "missing_credentials"
	codeInvalidAPIKey         = "invalid_api_key"
	codeEntitlementRequired   = "entitlement_required"
	codeInsufficientScope     = "insufficient_scope"
	codeRouteNotFound         = "route_not_found"
	codeRunNotFound           = "run_not_found"
	codeMethodNotAllowed      = "method_not_allowed"
	codeIdempotencyKeyReused  = "idempotency_key_reused"
	codeIdempotencyKeyInUse   = "idempotency_key_in_use"
	codeBodyTooLarge          = "body_too_large"
	codeUnsupportedMediaType  = "unsupported_media_type"
	codeRateLimitExceeded     = "rate_limit_exceeded"
	codeInternalError         = "internal_error"
	codeUnavailable           = "unavailable"
	codeOverloaded            = "overloaded"
)

// problemKinds gives each code its status and title: the one place where statuses are chosen.
var problemKinds = map[string]struct {
	status int
	title  string
}{
	codeInvalidJSON:           {400, "The body is not valid JSON"},
	codeInvalidEnvelope:       {400, "The envelope is not valid"},
	codeInvalidRequest:        {400, "The request body is not valid"},
	codeInvalidParameter:      {400, "A parameter is not valid"},
	codeIdempotencyKeyMissing: {400, "The Idempotency-Key header is missing"},
	codeIdempotencyKeyInvalid: {400, "The Idempotency-Key header is not valid"},
	codeMissingCredentials:    {401, "The request carries no API key"},
	codeInvalidAPIKey:         {401, "The API key is not valid"},
	codeEntitlementRequired:   {403, "The plan lacks an entitlement"},
	codeInsufficientScope:     {403, "The credential lacks a scope"},
	codeRouteNotFound:         {404, "There is no such route"},
	codeRunNotFound:           {404, "There is no such run"},
	codeMethodNotAllowed:      {405, "The route does not have this method"},
	codeIdempotencyKeyReused:  {409, "The idempotency key was used with a different request"},
	codeIdempotencyKeyInUse:   {409, "A request with this idempotency key is in flight"},
	codeBodyTooLarge:          {413, "The body is too large"},
	codeUnsupportedMediaType:  {415, "The media type is not supported"},
	codeRateLimitExceeded:     {429, "The rate limit of the current minute is exceeded"},
	codeInternalError:         {500, "Something went wrong on our side"},
	codeUnavailable:           {503, "The service is unavailable for the moment"},
	codeOverloaded:            {503, "The service is overloaded for the moment"},
}

// A problem is an answer other than success: an error that knows how to tell itself to a client [RFC 9457].
//
// [RFC 9457]: https://www.rfc-editor.org/rfc/rfc9457
type problem struct {
	code   string
	title  string // of a run check's own code; else problemKinds has it
	status int    // likewise
	detail string
	errors faults
	check  string // that refused a run

	header   http.Header // what goes with it, such as Allow
	typeURI  string      // when it is not the code's place in the reference
	violated []string    // policies
}

func (p *problem) Error() string { return p.code + ": " + p.detail }

// fail answers with the problem that an error is. An error that is none is told to nobody but the log.
func (x *exchange) fail(err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		p = problemOf(err)
		if p.code != codeOverloaded {
			x.err = err
		}
	}
	x.problem(p)
}

// problemOf chooses the problem for what the rooms behind the gateway return.
func problemOf(err error) *problem {
	retry := http.Header{"Retry-After": {"1"}}
	switch {
	case errors.Is(err, runs.ErrKeyReused):
		return &problem{code: codeIdempotencyKeyReused,
			detail: "This Idempotency-Key stands for a different request. Send a new key with a new request."}
	case errors.Is(err, runs.ErrKeyInUse):
		return &problem{code: codeIdempotencyKeyInUse, header: retry,
			detail: "A request with this Idempotency-Key has not ended yet. Send the same request again to get its answer."}
	case errors.Is(err, batch.ErrOverloaded):
		return &problem{code: codeOverloaded, header: retry, detail: "More requests are waiting than can be served soon. Try again."}
	case store.IsUnavailable(err):
		return &problem{code: codeUnavailable, header: retry, detail: "The database can't be reached in time. Try again."}
	}
	return &problem{code: codeInternalError, detail: "The error has been logged under this request's id."}
}

// refused tells what a run check found in the proposal that stood at the given pointer. Codes that the gateway does not
// know are 422, so that a new check needs nothing here.
func refused(r *runs.Refusal, at string) *problem {
	first := r.Faults[0]
	p := &problem{code: first.Code, title: first.Title, status: http.StatusUnprocessableEntity, check: r.Check, detail: first.Detail}
	if kind, ok := problemKinds[first.Code]; ok {
		p.status = kind.status
	}
	for _, f := range r.Faults {
		if f.Pointer != "" {
			p.errors.add(at+f.Pointer, f.Detail)
		}
	}
	switch n := len(p.errors); {
	case n == 1:
		p.detail = fmt.Sprintf("The check %s refuses the run at %s: %s.", r.Check, p.errors[0].Pointer, p.errors[0].Detail)
	case n > 1:
		p.detail = fmt.Sprintf("The check %s found %d faults in the run.", r.Check, n)
	}
	return p
}

func parameterProblem(f faults) *problem {
	return &problem{code: codeInvalidParameter, detail: "The query parameters are not valid here.", errors: f}
}

func invalidParameter(name, detail string) *problem {
	return parameterProblem(faults{{Parameter: shown(name), Detail: detail}})
}

const challenge = `Bearer realm="external-api-v1"`

func missingCredentials() *problem {
	return &problem{code: codeMissingCredentials, detail: "Send the header Authorization: Bearer <API_KEY>.",
		header: http.Header{"WWW-Authenticate": {challenge}}}
}

// invalidKey says one and the same of a malformed, unknown, expired, disabled or revoked key.
func invalidKey() *problem {
	return &problem{code: codeInvalidAPIKey, detail: "The key of the Authorization header is not valid now.",
		header: http.Header{"WWW-Authenticate": {challenge + `, error="invalid_token"`}}}
}

func insufficientScope(r *route) *problem {
	return &problem{code: codeInsufficientScope, detail: r.name() + " needs the scope " + strings.Join(r.scopes, " or ") + ".",
		header: http.Header{"WWW-Authenticate": {challenge + `, error="insufficient_scope", scope="` + strings.Join(r.scopes, " ") + `"`}}}
}

func noSuchRoute() *problem {
	return &problem{code: codeRouteNotFound, detail: "No route of this API has this path."}
}

func methodNotAllowed(allow, detail string) *problem {
	return &problem{code: codeMethodNotAllowed, detail: detail, header: http.Header{"Allow": {allow}}}
}

func limitExceeded(w *limits.Window) *problem {
	return &problem{code: codeRateLimitExceeded, typeURI: "https://iana.org/assignments/http-problem-types#quota-exceeded",
		violated: []string{"minute"}, header: http.Header{"Retry-After": {strconv.Itoa(secondsLeft(w))}},
		detail: fmt.Sprintf("The credential's limit of %d per minute is spent until the window ends.", w.Limit)}
}

// problemDocument is the wire form of a problem.
type problemDocument struct {
	Type      string   `json:"type"`
	Title     string   `json:"title"`
	Status    int      `json:"status"`
	Code      string   `json:"code"`
	Detail    string   `json:"detail"`
	RequestID string   `json:"request_id"`
	Check     string   `json:"check,omitempty"`
	Violated  []string `json:"violated-policies,omitempty"`
	Errors    faults   `json:"errors,omitempty"`
}

func (x *exchange) problem(p *problem) {
	d := problemDocument{Type: p.typeURI, Title: p.title, Status: p.status, Code: p.code, Detail: p.detail, RequestID: x.requestID,
		Check: p.check, Violated: p.violated, Errors: p.errors}
	x.code = p.code
	kind := problemKinds[p.code]
	if d.Status == 0 {
		d.Status = kind.status
	}
	if d.Title == "" {
		d.Title = kind.title
	}
	if d.Type == "" {
		d.Type = Base + "/docs#" + p.code
	}
	// What was said for the case that all goes well does not hold.
	for _, name := range []string{"ETag", "Link", "Location", "Cache-Control"} {
		delete(x.Header(), name)
	}
	for name, values := range p.header {
		x.Header()[name] = values
	}
	x.write(d.Status, "application/problem+json", encode(d))
}

// encode writes JSON as clients read it: < and & stand for themselves.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // wire types can be encoded
	}
	return b.Bytes()[:b.Len()-1] // without the line feed
}

// write sends a body whose length is known.
func (x *exchange) write(status int, mediaType string, body []byte) {
	x.set("Content-Type", mediaType)
	if x.Header()["Cache-Control"] == nil {
		x.set("Cache-Control", "no-store")
	}
	if len(body) > buffered {
		// net/http itself tells the length of what it can hold until the handler ends.
		x.set("Content-Length", strconv.Itoa(len(body)))
		http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	x.WriteHeader(status)
	x.Write(body) // a client that has gone can't be told
}

// buffered is how much of a body net/http holds back while the handler runs.
const buffered = 2048

// header sets a header whose name is written in its canonical form.
func header(w http.ResponseWriter, name, value string) { w.Header()[name] = []string{value} }

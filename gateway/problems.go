package gateway

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/brands"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/schedules"
)

// problems reports the problems of the public API.
var problems = problem.API{Reference: Base + "/docs", Realm: "external-api-v1"}

// fail responds with the problem that err is or stands for. The text of an internal error goes to the log only.
func (x *exchange) fail(err error) {
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		p = problemOf(err)
		if p.Code == problem.InternalError || p.Code == problem.Unavailable {
			x.err = err
		}
	}
	x.problem(p)
}

// problemOf chooses the problem for an error of the packages behind the gateway. Any other error is overloaded,
// unavailable or internal (problem.Of).
func problemOf(err error) *problem.Problem {
	// These errors need more than the code and the detail of problemsOfErrors.
	if e, ok := errors.AsType[*runs.QuotaError](err); ok {
		return &problem.Problem{Code: problem.JobQuotaExceeded, Detail: e.Detail()}
	}
	if e, ok := errors.AsType[*webhooks.TooManyDeliveriesError](err); ok {
		return tooManyDeliveries(e)
	}
	if e, ok := errors.AsType[*catalog.QuestionExistsError](err); ok {
		return &problem.Problem{Code: problem.QuestionExists, ExistingID: e.ID,
			Detail: "The account has this question in this language and country."}
	}
	if errors.Is(err, runs.ErrKeyInUse) {
		return &problem.Problem{Code: problem.IdempotencyKeyInUse, Header: problem.Retry(1),
			Detail: "A request with this Idempotency-Key is in progress. Send the same request again to get its response."}
	}
	for _, known := range problemsOfErrors {
		if errors.Is(err, known.err) {
			return &problem.Problem{Code: known.code, Detail: known.detail}
		}
	}
	return problem.Of(err)
}

// problemsOfErrors are the problems for errors that need no more than a code and a detail. The first match counts.
var problemsOfErrors = []struct {
	err          error
	code, detail string
}{
	{runs.ErrKeyReused, problem.IdempotencyKeyReused,
		"This Idempotency-Key was used with a different request. Use a new key for a new request."},
	{runs.ErrNotFound, problem.RunNotFound, "The account has no run with this id."},
	{visibility.ErrRunNotFound, problem.RunNotFound, "The account has no run with this id."},
	{webhooks.ErrEndpointNotFound, problem.WebhookNotFound, "The account has no webhook with this id."},
	{events.ErrNotFound, problem.EventNotFound, "The account has no event with this id that the credential may read."},
	{schedules.ErrNotFound, problem.ScheduleNotFound, "The account has no schedule with this id."},
	{schedules.ErrTooMany, problem.TooManySchedules,
		fmt.Sprintf("An account has at most %d schedules. Delete one that is not needed.", schedules.MaxSchedules)},
	{schedules.ErrOperator, problem.SchedulePaused, "An operator paused the schedule; only an operator can make it active again."},
	{brands.ErrNotFound, problem.BrandNotFound, "The account has no brand with this id."},
	{brands.ErrTooManyActive, problem.TooManyBrands, fmt.Sprintf("An account has at most %d active brands.", brands.MaxActive)},
	{brands.ErrTooMany, problem.TooManyBrands, "An account has at most 1,000 brands."},
	{visibility.ErrTooManyRows, problem.TooManyRows, "The query has more than 10,000 rows; narrow from and to, or group by fewer members."},
	{webhooks.ErrEndpointExists, problem.WebhookExists, "Another webhook of the account has this URL."},
	{webhooks.ErrTooManyEndpoints, problem.TooManyWebhooks,
		fmt.Sprintf("An account may have at most %d webhooks. Delete one that is not needed.", webhooks.MaxEndpoints)},
	{webhooks.ErrDisabled, problem.WebhookDisabled,
		"The webhook is disabled; see its disabled_reason. Only the operator can enable one that the operator disabled."},
	{catalog.ErrQuestionNotFound, problem.QuestionNotFound, "The account has no own question with this id."},
	{catalog.ErrTooManyQuestions, problem.TooManyQuestions, "An account has at most 10,000 own questions."},
}

// tooManyDeliveries reports a test or a resend beyond the limits of an endpoint or of its host name.
func tooManyDeliveries(e *webhooks.TooManyDeliveriesError) *problem.Problem {
	return &problem.Problem{Code: problem.TooManyDeliveries, Header: problem.Retry(max(1, int(math.Ceil(e.RetryAfter.Seconds())))),
		Detail: "Too many tests and resends of this webhook are pending, or too many were just sent to its host. Retry after the time in Retry-After."}
}

// refused reports the faults that a run check found in the request body at the given location. The first fault
// determines the code and the title.
func refused(r *runs.Refusal, at *request.Location) *problem.Problem {
	first := r.Faults[0]
	p := &problem.Problem{Code: first.Code, Title: first.Title, Check: r.Check, Detail: first.Detail}
	for _, f := range r.Faults {
		// A single fault without a pointer is in Detail already.
		if f.Pointer != "" || len(r.Faults) > 1 {
			p.Errors.Add(at.String()+f.Pointer, f.Detail)
		}
	}
	switch n := len(p.Errors); {
	case n == 1:
		p.Detail = fmt.Sprintf("The check %s rejected the run at %s: %s.", r.Check, p.Errors[0].Pointer, p.Errors[0].Detail)
	case n > 1:
		p.Detail = fmt.Sprintf("The check %s rejected the run: %d errors.", r.Check, n)
	}
	return p
}

// invalidPath reports a path that names no route, and the other parameters that cannot be read. Whether those that can
// be read are valid depends on the route.
func invalidPath(detail string, others request.Parameters) *problem.Problem {
	var f problem.Faults
	f.AddParameter("path", detail)
	for _, p := range others {
		if p.Fault != "" {
			f.AddParameter(p.Name, p.Fault)
		}
	}
	return request.InvalidParameters(f)
}

func missingCredentials() *problem.Problem {
	return problems.MissingCredentials("Send the header Authorization: Bearer <API_KEY>.")
}

func invalidKey() *problem.Problem {
	return problems.InvalidKey("The key in the Authorization header is not valid.")
}

func insufficientScope(r *route) *problem.Problem {
	return problems.InsufficientScope(r.name()+" needs the scope "+strings.Join(r.scopes, " or ")+".", r.scopes)
}

func noSuchRoute() *problem.Problem {
	return &problem.Problem{Code: problem.RouteNotFound, Detail: "No route of this API has this path."}
}

// limitExceeded has the problem type that IANA registers for an exceeded quota, with the name of the violated policy,
// which RateLimit-Policy also has.
func limitExceeded(w *limits.Window) *problem.Problem {
	return &problem.Problem{Code: problem.RateLimitExceeded, Type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
		ViolatedPolicies: []string{"minute"}, Header: problem.Retry(secondsLeft(w)),
		Detail: fmt.Sprintf("The credential's limit of requests per minute (%d) is reached. Retry after the time in Retry-After.", w.Limit)}
}

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

// problemOf chooses the problem for an error of the packages behind the gateway.
func problemOf(err error) *problem.Problem {
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
	switch {
	case errors.Is(err, runs.ErrKeyReused):
		return &problem.Problem{Code: problem.IdempotencyKeyReused,
			Detail: "This Idempotency-Key was used with a different request. Use a new key for a new request."}
	case errors.Is(err, runs.ErrKeyInUse):
		return &problem.Problem{Code: problem.IdempotencyKeyInUse, Header: problem.Retry(1),
			Detail: "A request with this Idempotency-Key is in progress. Send the same request again to get its response."}
	case errors.Is(err, runs.ErrNotFound), errors.Is(err, visibility.ErrRunNotFound):
		return &problem.Problem{Code: problem.RunNotFound, Detail: "The account has no run with this id."}
	case errors.Is(err, webhooks.ErrEndpointNotFound):
		return &problem.Problem{Code: problem.WebhookNotFound, Detail: "The account has no webhook with this id."}
	case errors.Is(err, events.ErrNotFound):
		return &problem.Problem{Code: problem.EventNotFound, Detail: "The account has no event with this id that the credential may read."}
	case errors.Is(err, schedules.ErrNotFound):
		return &problem.Problem{Code: problem.ScheduleNotFound, Detail: "The account has no schedule with this id."}
	case errors.Is(err, schedules.ErrTooMany):
		return &problem.Problem{Code: problem.TooManySchedules,
			Detail: fmt.Sprintf("An account has at most %d schedules. Delete one that is not needed.", schedules.MaxSchedules)}
	case errors.Is(err, schedules.ErrOperator):
		return &problem.Problem{Code: problem.SchedulePaused, Detail: "An operator paused the schedule; only an operator can make it active again."}
	case errors.Is(err, brands.ErrNotFound):
		return &problem.Problem{Code: problem.BrandNotFound, Detail: "The account has no brand with this id."}
	case errors.Is(err, brands.ErrTooManyActive):
		return &problem.Problem{Code: problem.TooManyBrands, Detail: fmt.Sprintf("An account has at most %d active brands.", brands.MaxActive)}
	case errors.Is(err, brands.ErrTooMany):
		return &problem.Problem{Code: problem.TooManyBrands, Detail: "An account has at most 1,000 brands."}
	case errors.Is(err, visibility.ErrTooManyRows):
		return &problem.Problem{Code: problem.TooManyRows,
			Detail: "The query has more than 10,000 rows; narrow from and to, or group by fewer members."}
	case errors.Is(err, webhooks.ErrEndpointExists):
		return &problem.Problem{Code: problem.WebhookExists, Detail: "Another webhook of the account has this URL."}
	case errors.Is(err, webhooks.ErrTooManyEndpoints):
		return &problem.Problem{Code: problem.TooManyWebhooks,
			Detail: fmt.Sprintf("An account may have at most %d webhooks. Delete one that is not needed.", webhooks.MaxEndpoints)}
	case errors.Is(err, webhooks.ErrDisabled):
		return &problem.Problem{Code: problem.WebhookDisabled,
			Detail: "The webhook is disabled; see its disabled_reason. Only the operator can enable one that the operator disabled."}
	case errors.Is(err, catalog.ErrQuestionNotFound):
		return &problem.Problem{Code: problem.QuestionNotFound, Detail: "The account has no own question with this id."}
	case errors.Is(err, catalog.ErrTooManyQuestions):
		return &problem.Problem{Code: problem.TooManyQuestions, Detail: "An account has at most 10,000 own questions."}
	}
	return problem.Of(err)
}

// tooManyDeliveries reports a test or a resend beyond the limits of an endpoint or of its host name.
func tooManyDeliveries(e *webhooks.TooManyDeliveriesError) *problem.Problem {
	return &problem.Problem{Code: problem.TooManyDeliveries, Header: problem.Retry(max(1, int(math.Ceil(e.RetryAfter.Seconds())))),
		Detail: "Too many tests and resends of this webhook are pending, or too many were just sent to its host. Retry after the time in Retry-After."}
}

// refused reports the faults that a run check found in the request body at the given location.
func refused(r *runs.Refusal, at *request.Location) *problem.Problem {
	first := r.Faults[0]
	p := &problem.Problem{Code: first.Code, Title: first.Title, Check: r.Check, Detail: first.Detail}
	for _, f := range r.Faults {
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

func limitExceeded(w *limits.Window) *problem.Problem {
	return &problem.Problem{Code: problem.RateLimitExceeded, Type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
		ViolatedPolicies: []string{"minute"}, Header: problem.Retry(secondsLeft(w)),
		Detail: fmt.Sprintf("The credential's limit of requests per minute (%d) is reached. Retry after the time in Retry-After.", w.Limit)}
}

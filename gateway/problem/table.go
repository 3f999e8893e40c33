package problem

import (
	"net/http"
	"slices"
)

// The codes that the interface itself reports: stable identifiers that clients switch on. Run checks bring their own.
const (
	InvalidJSON           = "invalid_json"
	InvalidEnvelope       = "invalid_envelope"
	InvalidRequest        = "invalid_request"
	InvalidParameter      = "invalid_parameter"
	TooManyRows           = "too_many_rows"
	IdempotencyKeyMissing = "idempotency_key_missing"
	IdempotencyKeyInvalid = "idempotency_key_invalid"
	MissingCredentials    = "missing_credentials"
	InvalidAPIKey         = "invalid_api_key"
	EntitlementRequired   = "entitlement_required"
	InsufficientScope     = "insufficient_scope"
	JobQuotaExceeded      = "job_quota_exceeded"
	OriginNotAllowed      = "origin_not_allowed"
	RouteNotFound         = "route_not_found"
	RunNotFound           = "run_not_found"
	WebhookNotFound       = "webhook_not_found"
	EventNotFound         = "event_not_found"
	BrandNotFound         = "brand_not_found"
	QuestionNotFound      = "question_not_found"
	MethodNotAllowed      = "method_not_allowed"
	IdempotencyKeyReused  = "idempotency_key_reused"
	IdempotencyKeyInUse   = "idempotency_key_in_use"
	RunFinal              = "run_final"
	WebhookExists         = "webhook_exists"
	TooManyWebhooks       = "too_many_webhooks"
	WebhookDisabled       = "webhook_disabled"
	BrandConflict         = "brand_conflict"
	TooManyBrands         = "too_many_brands"
	QuestionExists        = "question_exists"
	TooManyQuestions      = "too_many_questions"
	ScheduleNotFound      = "schedule_not_found"
	ScheduleExists        = "schedule_exists"
	TooManySchedules      = "too_many_schedules"
	SchedulePaused        = "schedule_paused"
	BodyTooLarge          = "body_too_large"
	UnsupportedMediaType  = "unsupported_media_type"
	RateLimitExceeded     = "rate_limit_exceeded"
	TooManyDeliveries     = "too_many_deliveries"
	InternalError         = "internal_error"
	Unavailable           = "unavailable"
	Overloaded            = "overloaded"
)

// A Kind is what all problems of one code have in common.
type Kind struct {
	Code   string
	Status int
	Title  string
}

// kinds is the table of codes. This file is the only place where the status of a problem is chosen.
var kinds = []Kind{
	{InvalidJSON, 400, "The body is not valid JSON"},
	{InvalidEnvelope, 400, "The envelope is not valid"},
	{InvalidRequest, 400, "The request body is not valid"},
	{InvalidParameter, 400, "A parameter is not valid"},
	{TooManyRows, 400, "The query has too many rows"},
	{IdempotencyKeyMissing, 400, "The Idempotency-Key header is missing"},
	{IdempotencyKeyInvalid, 400, "The Idempotency-Key header is not valid"},
	{MissingCredentials, 401, "The request carries no API key"},
	{InvalidAPIKey, 401, "The API key is not valid"},
	{EntitlementRequired, 403, "The plan lacks an entitlement"},
	{InsufficientScope, 403, "The credential lacks a scope"},
	{JobQuotaExceeded, 403, "The run exceeds the account's job quota"},
	{OriginNotAllowed, 403, "The origin is not allowed"},
	{RouteNotFound, 404, "There is no such route"},
	{RunNotFound, 404, "There is no such run"},
	{WebhookNotFound, 404, "There is no such webhook"},
	{EventNotFound, 404, "There is no such event"},
	{BrandNotFound, 404, "There is no such brand"},
	{QuestionNotFound, 404, "There is no such question"},
	{ScheduleNotFound, 404, "There is no such schedule"},
	{MethodNotAllowed, 405, "The route does not have this method"},
	{IdempotencyKeyReused, 409, "The idempotency key was used with a different request"},
	{IdempotencyKeyInUse, 409, "A request with this idempotency key is in progress"},
	{RunFinal, 409, "The run is final"},
	{WebhookExists, 409, "The account has a webhook with this URL"},
	{TooManyWebhooks, 409, "The account has the maximum number of webhooks"},
	{WebhookDisabled, 409, "The webhook is disabled"},
	{BrandConflict, 409, "Another brand has this name or domain"},
	{TooManyBrands, 409, "The account has the maximum number of brands"},
	{QuestionExists, 409, "The account has this question"},
	{TooManyQuestions, 409, "The account has the maximum number of own questions"},
	{ScheduleExists, 409, "The account has a schedule with this name"},
	{TooManySchedules, 409, "The account has the maximum number of schedules"},
	{SchedulePaused, 409, "The schedule is paused by an operator"},
	{BodyTooLarge, 413, "The body is too large"},
	{UnsupportedMediaType, 415, "The media type is not supported"},
	{RateLimitExceeded, 429, "The rate limit of the current minute is exceeded"},
	{TooManyDeliveries, 429, "Too many tests and resends are pending"},
	{InternalError, 500, "Internal error"},
	{Unavailable, 503, "The service is temporarily unavailable"},
	{Overloaded, 503, "The service is temporarily overloaded"},
}

// Kinds returns the table, ordered by status.
func Kinds() []Kind { return slices.Clone(kinds) }

// kindOf returns the kind of a code; its Status is 0 when the code is not in the table.
func kindOf(code string) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Code == code }); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}

// StatusCode returns the status of the response. A code of a run check need not be in the table, so that a new check
// needs no change here.
func (p *Problem) StatusCode() int {
	switch kind := kindOf(p.Code); {
	case kind.Status != 0:
		return kind.Status
	case p.Check != "":
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

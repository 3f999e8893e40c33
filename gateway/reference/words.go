package reference

// routeWords are what is said of a route beside what the gateway's table says. All texts are plain text; what stands
// between backquotes is code.
type routeWords struct {
	ID    string // of the operation
	Tag   string
	Title string
	About string
}

// tags are the parts of the reference that routes stand in, in order.
var tags = []struct{ Name, About string }{
	{"Identity", "Whose key it is, and what it may do."},
	{"Runs", "Measurement runs: models × questions × repetitions, checked, written in one transaction, counted and queued."},
	{"Catalog", "What can be measured: models, with what their providers still lack, and questions."},
	{"Insights", "What measurements led to: recommendations and alerts."},
	{gatewayTag, "The gateway's own two forms, at its one address: reads with `path` in the query, writes with an envelope. They reach the same routes as the plain addresses."},
}

const gatewayTag = "Gateway"

var routesWords = map[string]routeWords{
	"GET /v1/me": {"getIdentity", "Identity", "Read the identity of a key",
		"The credential that the key belongs to, its scopes and limit, and its account's plan. It needs a valid key and nothing else: this is where a client learns that its plan lacks `api_access`."},
	"GET /v1/runs": {"listRuns", "Runs", "List runs",
		"The account's runs, newest first."},
	"GET /v1/runs/{id}": {"getRun", "Runs", "Read a run",
		"One run. `queued` becomes `running`, then `completed`, `partial` or `failed`; a run that is queued or running may become `canceled`. A client treats a status that it does not know as not final. Another account's run is not found, in the same words as one that does not exist."},
	"POST /v1/runs": {"createRun", "Runs", "Create a run",
		"Makes one job for each model, question and repetition. The run passes its checks in order (entitlement, methodology, model support, grounded search); the first that refuses reports every fault it found, and nothing is written before all have passed. `Location` is the address of the run at the gateway."},
	"GET /v1/catalog/models": {"listModels", "Catalog", "List models",
		"The models, by id. `grounded_search.unmet` says what a model's provider still lacks; while it lacks anything, no grounded run is accepted for the model. The answer carries an `ETag`; sent back in `If-None-Match`, it spares the body while the catalog is the same."},
	"GET /v1/catalog/questions": {"listQuestions", "Catalog", "List questions",
		"Everybody's questions and the account's own, by id. The answer carries an `ETag`, as that of the models does."},
	"GET /v1/recommendations": {"listRecommendations", "Insights", "List recommendations",
		"What to do to be named more often, newest first."},
	"GET /v1/alerts": {"listAlerts", "Insights", "List alerts",
		"What has changed that somebody should know of, newest first."},
}

// parameterWords say what a parameter does, by its name, or by a route's and its name where they differ.
var parameterWords = map[string]string{
	"limit":               "How many items a page has at most.",
	"cursor":              "The `next_cursor` of the page before, with the same filters. It is opaque, and good for one list, account and set of filters.",
	"id":                  "The run's id.",
	"measurement_type":    "Only those of this measurement type.",
	"country":             "Only those of this country.",
	"model_id":            "Only runs that measure this model.",
	"created_from":        "Only those created at this time or later.",
	"created_to":          "Only those created before this time.",
	"detected_from":       "Only those detected at this time or later.",
	"detected_to":         "Only those detected before this time.",
	"provider":            "Only models of this provider.",
	"grounded_search":     "Only models for which grounded search is available now, or is not.",
	"language":            "Only questions in this very language.",
	"topic":               "Only questions of this topic.",
	"tag":                 "Only questions that carry this tag.",
	"run_id":              "Only those drawn from this run.",
	"priority":            "Only those of this priority.",
	"category":            "Only those of this category.",
	"type":                "Only those of this type.",
	"severity":            "Only alerts of this severity or a worse one.",
	"status":              "Only those in this state.",
	"GET /v1/runs status": "Only runs in one of these states.",
	"GET /v1/catalog/models measurement_type": "Only models that cover this measurement type.",
	"Idempotency-Key":                         "A key of your own, such as a UUID: a fresh one with each run, the same one with each retry.",
	"If-None-Match":                           "The `ETag` of an earlier answer.",
}

// codeWords say of a problem what a client does about it.
var codeWords = map[string]string{
	"invalid_json":                  "The body is not strict JSON: UTF-8, exact names, no duplicate member, nothing after the value. `detail` says where it breaks.",
	"invalid_envelope":              "A member of the envelope is missing, unknown or of the wrong type. `errors` lists them all, `pointer` saying where.",
	"invalid_request":               "A member of the body is missing, unknown or malformed. `errors` lists them all; `pointer` leads into what was sent, so into the envelope where one was.",
	"invalid_parameter":             "A query parameter is unknown, repeated or malformed. `errors` names each in `parameter`. An old cursor, or one of other filters, is one of these: begin again without it.",
	"idempotency_key_missing":       "Creating a run needs the header `Idempotency-Key`.",
	"idempotency_key_invalid":       "The key is empty, too long, holds something other than visible ASCII characters, or is given twice.",
	"missing_credentials":           "Send `Authorization: Bearer` and the key. A key in the query string is never read.",
	"invalid_api_key":               "The key is unknown, malformed, expired, disabled or revoked; which of them is not told. Nothing but another key helps.",
	"entitlement_required":          "The account's plan does not include `api_access`, whatever the scopes of its keys. For a new run this is the first run check.",
	"insufficient_scope":            "The credential was not granted the scope that the route needs. `WWW-Authenticate` names it.",
	"route_not_found":               "No route has this path. Paths are matched as they are written: no trailing slash, nothing cleaned, no redirect.",
	"run_not_found":                 "The account has no run of this id. Another account's run is not found either.",
	"method_not_allowed":            "`Allow` lists the methods that there are. An envelope never performs a read.",
	"body_too_large":                "Send a smaller body.",
	"unsupported_media_type":        "Send `Content-Type: application/json`, in UTF-8, without a `Content-Encoding`.",
	"idempotency_key_reused":        "This key stands for a different request already. A new request needs a new key; the old request gets its answer again.",
	"idempotency_key_in_use":        "A request with this key has not ended yet. Send the same request again after `Retry-After`.",
	"unsupported_measurement_type":  "No active methodology covers this `measurement_type`.",
	"repetitions_out_of_bounds":     "The methodology bounds `repetitions`; `detail` says at what (AIVM-1.0: 20).",
	"too_many_jobs":                 "Models × questions × repetitions exceed what the methodology allows in a run (AIVM-1.0: 100,000). Make several runs.",
	"unknown_model":                 "A model is not in the catalog. `errors` points at each.",
	"unknown_question":              "A question does not exist for this account. `errors` points at each.",
	"question_archived":             "An archived question is not measured any more.",
	"model_not_supported":           "A model is not active, or does not cover the measurement type, the country or the language; `errors` says which.",
	"grounded_search_not_supported": "A model can't search, which a grounded run needs.",
	"grounded_search_unavailable":   "A model's provider still lacks something (configuration, secret, contract or legal approval), named in `errors`. Try again when the model's `grounded_search.available` is true.",
	"provider_unavailable":          "The provider of a model has unmet dependencies (configuration, secret, contract or legal approval); `errors` lists them. Send the request again when the model catalog no longer lists them in `grounded_search.unmet`.",
	"rate_limit_exceeded":           "The minute is spent. Wait for `Retry-After` seconds. The problem's `type` is the registered one for exceeded quotas; this is its place here.",
	"internal_error":                "A fault of the service. It is logged under the `request_id`. A run can be sent again with the same idempotency key.",
	"unavailable":                   "The service can't reach its database in time. Try again after `Retry-After`; a run with the same idempotency key.",
	"overloaded":                    "More requests wait than can be served soon. Try again after `Retry-After`; a run with the same idempotency key.",
}

type headerWord struct {
	Name, About, Type, Pattern string
}

// headerWords describe the headers of answers.
var headerWords = []headerWord{
	{"X-Request-Id", "The request's id, which is also the `request_id` of a problem. Keep it for support.", "string", "^req_" + idPattern + "$"},
	{"RateLimit-Policy", "The credential's limit: `q` requests in a window of `w` seconds.", "string", `^"minute";q=[0-9]+;w=60$`},
	{"RateLimit", "What is left of the window: `r` requests, for `t` seconds.", "string", `^"minute";r=[0-9]+;t=[0-9]+$`},
	{"X-RateLimit-Limit", "The credential's limit in a minute.", "integer", ""},
	{"X-RateLimit-Remaining", "The requests left in this minute.", "integer", ""},
	{"X-RateLimit-Reset", "When the next minute begins, in Unix seconds.", "integer", ""},
	{"Cache-Control", "`no-store`, but for catalogs, which may be kept and must be asked for again.", "string", ""},
	{"Retry-After", "In how many seconds to try again.", "integer", ""},
	{"WWW-Authenticate", "The challenge of RFC 6750: what is wrong with the key, or which scope it lacks.", "string", "^Bearer "},
	{"Allow", "The methods that there are.", "string", ""},
	{"ETag", "Names this very representation of the catalog; strong.", "string", `^"[0-9A-Za-z_-]+"$`},
	{"Link", "Where the next page stands (`rel=\"next\"`), in the form in which this one was asked for; missing on the last page.", "string", `^<[^>]+>; rel="next"$`},
	{"Location", "The address of the run, at the gateway.", "string", "^/"},
	{"Idempotent-Replayed", "`true`, where this is the first answer again.", "string", "^true$"},
}

// idPattern is that of a TypeID behind its prefix.
const idPattern = "[0-7][0-9a-hjkmnp-tv-z]{25}"

// IDPattern is the pattern of an id with the given prefix.
func IDPattern(prefix string) string { return "^" + prefix + "_" + idPattern + "$" }

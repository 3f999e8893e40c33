package gateway

import (
	"encoding/json"
	"strconv"
	"strings"

	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/gateway/wire"
	"aiv/insights"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/results"
	"aiv/store"
)

// RouteFolders maps each route to the folder of its golden files: GET /v1/catalog/models to catalog.models, POST /v1/runs
// to runs.create, POST /v1/runs/{id}/cancel to runs.cancel.
func RouteFolders() map[string]string {
	folders := make(map[string]string)
	for i := range routes {
		r := &routes[i]
		folder := strings.ReplaceAll(strings.TrimPrefix(r.path, "/v1/"), "/", ".")
		switch {
		case strings.Contains(folder, ".{id}."):
			folder = strings.Replace(folder, ".{id}.", ".", 1)
		case r.method == "PATCH", r.method == "DELETE":
			folder = strings.TrimSuffix(folder, "{id}") + map[string]string{"PATCH": "change", "DELETE": "delete"}[r.method]
		case r.method == "POST":
			folder += ".create"
		case strings.HasSuffix(folder, "{id}"):
			folder = strings.TrimSuffix(folder, "{id}") + "read"
		case folder == "runs", folder == "webhooks", folder == "events":
			folder += ".list"
		}
		folders[r.name()] = folder
	}
	return folders
}

// InUse returns what requests have taken of the bounds of g and not released.
func (g *Gateway) InUse() (n int) {
	for _, s := range []*share{&g.bodies, &g.pages, &g.writes, &g.readQueue.waiting} {
		s.mu.Lock()
		n += s.taken
		s.mu.Unlock()
	}
	return n + len(g.readQueue.slots)
}

// Fill takes what an account may have of runs being created and of pages being sent, until release is called.
func (g *Gateway) Fill(account store.ID) (release func()) {
	for _, s := range []*share{&g.writes, &g.pages} {
		s.take(account, s.maxOfOne)
	}
	return func() {
		for _, s := range []*share{&g.writes, &g.pages} {
			s.release(account, s.maxOfOne)
		}
	}
}

// RouteScopes returns the scopes of each route.
func RouteScopes() map[string][]string {
	scopes := make(map[string][]string)
	for i := range routes {
		scopes[routes[i].name()] = append([]string{}, routes[i].scopes...)
	}
	return scopes
}

// RouteParameters returns the names of the query and header parameters of each route that has some.
func RouteParameters() map[string][]string {
	return map[string][]string{
		"GET /v1/runs":              parameterNames(&runList),
		"POST /v1/runs":             {"Idempotency-Key"},
		"GET /v1/runs/{id}/results": parameterNames(&resultList),
		"GET /v1/usage":             {"month"},
		"GET /v1/catalog/models":    append(parameterNames(&modelList), "If-None-Match"),
		"GET /v1/catalog/questions": append(parameterNames(&questionList), "If-None-Match"),
		"GET /v1/recommendations":   parameterNames(&recommendationList),
		"GET /v1/alerts":            parameterNames(&alertList),

		"GET /v1/webhooks":                 parameterNames(&webhookList),
		"GET /v1/webhooks/{id}/deliveries": parameterNames(&deliveryList),
		"GET /v1/events":                   parameterNames(&eventList),
	}
}

func parameterNames[F, T any](l *list[F, T]) []string {
	names := []string{"limit", "cursor"}
	for _, f := range l.filters {
		names = append(names, f.name)
	}
	return names
}

// WireTypes returns a value of each wire type of responses, by the name of its schema.
func WireTypes() map[string]any {
	return map[string]any{
		"Identity": identity{}, "Credential": identityCredential{}, "Plan": identityPlan{},
		"CreatedRun": runCreated{}, "Run": runDocument{}, "RunJobs": runJobs{},
		"Result": resultDocument{}, "ResultError": resultError{}, "Answer": answerDocument{}, "AnswerUsage": answerUsage{}, "Citation": citationDocument{},
		"Usage": usageDocument{}, "UsageJobs": usageJobs{}, "UsageQuota": usageQuota{},
		"Model": modelDocument{}, "GroundedSearch": groundedSearch{}, "Question": questionDocument{},
		"Recommendation": recommendationDocument{}, "Alert": alertDocument{},
		"RunPage": listDocument{}, "ModelPage": listDocument{}, "QuestionPage": listDocument{}, "ResultPage": listDocument{},
		"RecommendationPage": listDocument{}, "AlertPage": listDocument{},
		"Webhook": webhookDocument{}, "CreatedWebhook": webhookWithSecret{}, "Event": eventDocument{}, "Delivery": deliveryDocument{},
		"WebhookPage": listDocument{}, "EventPage": listDocument{}, "DeliveryPage": listDocument{},
		"Problem": problem.Document{}, "Fault": problem.Fault{},
	}
}

// listDocument describes the JSON of a page.
type listDocument struct {
	Data       []any   `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// runDocument describes the JSON of a run, which appendRun encodes.
type runDocument struct {
	ID                 string   `json:"id"`
	Status             string   `json:"status"`
	MeasurementType    string   `json:"measurement_type"`
	MethodologyVersion string   `json:"methodology_version"`
	ModelIDs           []string `json:"model_ids"`
	QuestionIDs        []string `json:"question_ids"`
	Repetitions        int      `json:"repetitions"`
	Locale             string   `json:"locale"`
	Country            string   `json:"country"`
	Language           string   `json:"language"`
	TotalJobs          int      `json:"total_jobs"`
	Jobs               runJobs  `json:"jobs"`
	CreatedAt          string   `json:"created_at"`
	StartedAt          *string  `json:"started_at"`
	FinishedAt         *string  `json:"finished_at"`
}

type runJobs struct {
	Queued    int `json:"queued"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled"`
}

func newRunDocument(r *runs.Run) runDocument {
	return runDocument{
		ID: r.ID.Text("run"), Status: r.Status, MeasurementType: r.MeasurementType, MethodologyVersion: r.MethodologyVersion,
		ModelIDs: r.ModelIDs, QuestionIDs: r.QuestionIDs, Repetitions: r.Repetitions,
		Locale: r.Locale, Country: r.Country, Language: r.Language, TotalJobs: r.TotalJobs,
		Jobs: runJobs{
			Queued: r.Queued(), Running: r.Running, Completed: r.Completed, Failed: r.Failed, Canceled: r.Canceled,
		},
		CreatedAt: store.FormatTime(r.CreatedAt), StartedAt: store.FormatTimeOrNil(r.StartedAt), FinishedAt: store.FormatTimeOrNil(r.FinishedAt),
	}
}

// identity describes the JSON of GET /v1/me, which appendIdentity encodes.
type identity struct {
	APIVersion string             `json:"api_version"`
	Credential identityCredential `json:"credential"`
	Plan       identityPlan       `json:"plan"`
}

type identityCredential struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	KeyPrefix string   `json:"key_prefix"`
	Scopes    []string `json:"scopes"`
	RateLimit int      `json:"rate_limit_per_minute"`
}

type identityPlan struct {
	Code     string   `json:"code"`
	Features []string `json:"features"`
}

func newIdentity(c *auth.Credential) identity {
	return identity{
		APIVersion: apiVersion,
		Credential: identityCredential{c.ID.Text("cred"), c.Name, c.KeyPrefix, c.Scopes, c.RateLimit},
		Plan:       identityPlan{c.Plan.Code, c.Plan.Features},
	}
}

// resultDocument describes the JSON of a job of a run, which appendResult encodes.
type resultDocument struct {
	ID         string          `json:"id"`
	ModelID    string          `json:"model_id"`
	QuestionID string          `json:"question_id"`
	Repetition int             `json:"repetition"`
	Status     string          `json:"status"`
	Attempts   int             `json:"attempts"`
	Answer     *answerDocument `json:"answer"`
	Error      *resultError    `json:"error"`
	StartedAt  *string         `json:"started_at"`
	FinishedAt *string         `json:"finished_at"`
}

// resultError is why a job failed.
type resultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type answerDocument struct {
	Text          string             `json:"text"`
	Citations     []citationDocument `json:"citations"`
	SearchQueries []string           `json:"search_queries"`
	ModelVersion  *string            `json:"model_version"`
	AnsweredAt    string             `json:"answered_at"`
	Searched      *bool              `json:"searched"`
	Truncated     bool               `json:"truncated"`
	Usage         *answerUsage       `json:"usage"`
}

type answerUsage struct {
	InputTokens  *int64 `json:"input_tokens"`
	OutputTokens *int64 `json:"output_tokens"`
	Searches     *int64 `json:"searches"`
}

type citationDocument struct {
	Position int     `json:"position"`
	URL      string  `json:"url"`
	Domain   string  `json:"domain"`
	Title    *string `json:"title"`
}

func newResultDocument(r *results.Result) resultDocument {
	d := resultDocument{
		ID: r.Key.String(), ModelID: r.ModelID, QuestionID: r.QuestionID, Repetition: r.Repetition, Status: r.Status, Attempts: r.Attempts,
		StartedAt: store.FormatTimeOrNil(r.StartedAt), FinishedAt: store.FormatTimeOrNil(r.FinishedAt),
	}
	if r.ErrorCode != nil {
		d.Error = &resultError{*r.ErrorCode, *r.ErrorMessage}
	}
	if a := r.Answer; a != nil {
		d.Answer = &answerDocument{
			Text: a.Text, Citations: []citationDocument{}, SearchQueries: append([]string{}, a.SearchQueries...), ModelVersion: a.ModelVersion,
			AnsweredAt: store.FormatTime(a.AnsweredAt), Searched: a.Searched, Truncated: a.Truncated, Usage: (*answerUsage)(a.Usage),
		}
		for _, c := range a.Citations {
			d.Answer.Citations = append(d.Answer.Citations, citationDocument(c))
		}
	}
	return d
}

// AppendResult appends a result as the list of results does.
func AppendResult(b []byte, r *results.Result) []byte { return appendResult(b, r) }

// ResultByReflection encodes a result by encoding/json.
func ResultByReflection(r *results.Result) []byte { return wire.Encode(newResultDocument(r)) }

// Enumerations returns the values of each schema that enumerates them.
func Enumerations() map[string][]string {
	return map[string][]string{
		"Scope": auth.Scopes, "RunStatus": runs.Statuses, "JobStatus": results.Statuses,
		"ModelStatus": catalog.ModelStatuses, "QuestionStatus": catalog.QuestionStatuses, "Dependency": catalog.Dependencies,
		"Category": insights.Categories, "Priority": insights.Priorities, "RecommendationStatus": insights.RecommendationStatuses,
		"AlertType": insights.AlertTypes, "Severity": insights.Severities, "AlertStatus": insights.AlertStatuses, "Direction": insights.Directions,
		"EventType": events.Types(), "EventSelector": append([]string{webhooks.All}, events.Types()...), "DeliveryStatus": webhooks.DeliveryStatuses(),
		"DisabledReason": {webhooks.ByCustomer, webhooks.ByOperator, webhooks.Gone, webhooks.Failing},
		"DeliveryError": {webhooks.ErrorStatus, webhooks.ErrorTimeout, webhooks.ErrorConnection, webhooks.ErrorTLS, webhooks.ErrorRedirect,
			webhooks.ErrorBlocked},
	}
}

// Patterns returns the pattern of each schema that has the name of a value.
func Patterns() map[string]string {
	return map[string]string{
		"CatalogId": catalogID.form().String(), "MeasurementType": measurementType.form().String(), "Locale": locale.form().String(),
		"Country": country.form().String(), "Language": language.form().String(),
	}
}

// Bounds returns the bounds of the program by their JSON pointer in openapi.json.
func Bounds() map[string]json.Number {
	number := func(n int) json.Number { return json.Number(strconv.Itoa(n)) }
	const schemas, parameters = "#/components/schemas/", "#/components/parameters/"
	return map[string]json.Number{
		schemas + "NewRun/properties/model_ids/maxItems":                number(maxModels),
		schemas + "NewRun/properties/question_ids/maxItems":             number(maxQuestions),
		schemas + "NewWebhook/properties/url/maxLength":                 number(webhooks.MaxURL),
		schemas + "NewWebhook/properties/description/maxLength":         number(webhooks.MaxDescription),
		schemas + "WebhookChange/properties/url/maxLength":              number(webhooks.MaxURL),
		schemas + "WebhookChange/properties/description/maxLength":      number(webhooks.MaxDescription),
		schemas + "Credential/properties/rate_limit_per_minute/maximum": number(auth.MaxRateLimit),
		parameters + "Limit/schema/maximum":                             number(maxLimit),
		parameters + "Limit/schema/default":                             number(defaultLimit),
		parameters + "Cursor/schema/maxLength":                          number(maxCursor),
	}
}

// ProblemStatuses returns the status of each code of the gateway.
func ProblemStatuses() map[string]int {
	statuses := make(map[string]int)
	for _, kind := range problem.Kinds() {
		statuses[kind.Code] = kind.Status
	}
	return statuses
}

// IdentityByReflection encodes an identity by encoding/json.
func IdentityByReflection(c *auth.Credential) []byte { return wire.Encode(newIdentity(c)) }

// AppendIdentity appends an identity without reflection.
func AppendIdentity(b []byte, c *auth.Credential) []byte { return appendIdentity(b, c) }

// RunByReflection encodes a run by encoding/json.
func RunByReflection(r *runs.Run) []byte { return wire.Encode(newRunDocument(r)) }

// AppendRun appends a run without reflection.
func AppendRun(b []byte, r *runs.Run) []byte { return appendRun(b, r) }

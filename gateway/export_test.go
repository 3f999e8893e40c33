package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/insights"
	"aiv/insights/brands"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/runs/schedules"
	"aiv/store"
)

// A Route is an entry of routes.
type Route struct {
	Name           string
	Method, Path   string
	Golden         string
	Scopes         []string
	Query, Header  []string
	Body, Response any
}

// Routes returns the routes.
func Routes() (all []Route) {
	for i := range routes {
		r := &routes[i]
		scopes := append([]string{}, r.scopes...)
		in := r.input
		all = append(all, Route{r.name(), r.method, r.path, r.golden, scopes, in.query, in.header, in.body, r.response})
	}
	return all
}

// Problem returns the wire type of problems.
func Problem() any { return problem.Document{} }

// Wait makes reads wait, for a connection and for metrics, as long as a test does.
func (g *Gateway) Wait(d time.Duration) { g.measureTime, g.readQueue.wait = d, d }

// InUse returns what requests have taken of the bounds of g and not released.
func (g *Gateway) InUse() (n int) {
	for _, s := range []*share{&g.bodies, &g.pages, &g.writes, &g.readQueue.waiting} {
		s.mu.Lock()
		n += s.taken
		s.mu.Unlock()
	}
	return n + len(g.readQueue.slots)
}

// Fill takes what an account may have of a bound, until release is called.
func (g *Gateway) Fill(bound string, account store.ID) (release func()) {
	s := map[string]*share{"bodies": &g.bodies, "writes": &g.writes, "pages": &g.pages}[bound]
	s.take(account, s.maxOfOne)
	return func() { s.release(account, s.maxOfOne) }
}

// Count counts ended jobs, as aiv dispatch does.
func Count() func(context.Context, store.Tx, *pgx.Batch, []jobs.Ended) error {
	counter := newAnswers()
	return func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []jobs.Ended) error {
		all := make([]visibility.Job, len(ended))
		for i, e := range ended {
			all[i] = visibility.Job{Account: e.Key.Account, Run: e.Key.Run, Ordinal: e.Key.Ordinal}
			if e.Answer != nil {
				all[i].Answer = matchedAnswer(e.Answer)
			}
		}
		return counter.Count(ctx, tx, b, all)
	}
}

// Values returns the enumerations, patterns and bounds of the program by their JSON pointers in openapi.json.
func Values() map[string]any {
	const schemas, parameters = "#/components/schemas/", "#/components/parameters/"
	all := make(map[string]any)
	for name, values := range map[string][]string{
		"Scope": auth.Scopes, "RunStatus": runs.Statuses, "JobStatus": results.Statuses, "ModelStatus": catalog.ModelStatuses,
		"QuestionStatus": catalog.QuestionStatuses, "Dependency": catalog.Dependencies, "Category": insights.Categories,
		"Priority": insights.Priorities, "RecommendationStatus": insights.RecommendationStatuses,
		"Severity": insights.Severities, "AlertType": insights.AlertTypes, "AlertStatus": insights.AlertStatuses,
		"Direction": insights.Directions,
		"EventType": events.Types(), "EventSelector": append([]string{webhooks.All}, events.Types()...),
		"DeliveryStatus": webhooks.DeliveryStatuses(), "Cadence": schedules.Cadences, "ScheduleStatus": schedules.Statuses,
		"OccurrenceStatus": schedules.OccurrenceStatuses, "PausedReason": schedules.PausedReasons,
		"Weekday":   slices.Concat(schedules.Weekdays[1:], schedules.Weekdays[:1]),
		"BrandKind": brands.Kinds, "BrandStatus": brands.Statuses, "Flag": {"absence", "conflict", "echo"},
		"MissingReason": {visibility.NoAnswers, visibility.NoSources, visibility.NoMentions, visibility.NoCompetitors,
			visibility.NoCitations},
		"Verdict":        {visibility.Up, visibility.Down, visibility.NoClearChange, visibility.NotComparable},
		"SourceOwner":    {visibility.OwnerOwn, visibility.OwnerCompetitor, visibility.OwnerOther},
		"DisabledReason": {webhooks.ByCustomer, webhooks.ByOperator, webhooks.Gone, webhooks.Failing},
		"DeliveryError": {webhooks.ErrorStatus, webhooks.ErrorTimeout, webhooks.ErrorConnection, webhooks.ErrorTLS,
			webhooks.ErrorRedirect, webhooks.ErrorBlocked},
	} {
		all[schemas+name+"/enum"] = Anys(values)
	}
	all[schemas+"Dimension/enum"] = Anys(visibility.Dimensions)
	for name, p := range map[string]pattern{"CatalogId": catalogID, "MeasurementType": measurementType, "Locale": locale,
		"Country": country, "Language": language} {
		all[schemas+name+"/pattern"] = p.form().String()
	}
	for at, bound := range map[string]int{
		schemas + "NewRun/properties/model_ids/maxItems":                maxModels,
		schemas + "NewRun/properties/question_ids/maxItems":             maxQuestions,
		schemas + "NewWebhook/properties/url/maxLength":                 webhooks.MaxURL,
		schemas + "NewWebhook/properties/description/maxLength":         webhooks.MaxDescription,
		schemas + "WebhookChange/properties/url/maxLength":              webhooks.MaxURL,
		schemas + "WebhookChange/properties/description/maxLength":      webhooks.MaxDescription,
		schemas + "Credential/properties/rate_limit_per_minute/maximum": auth.MaxRateLimit,
		parameters + "Limit/schema/maximum":                             maxLimit,
		parameters + "Limit/schema/default":                             defaultLimit,
		parameters + "Cursor/schema/maxLength":                          maxCursor,
	} {
		all[at] = json.Number(strconv.Itoa(bound))
	}
	return all
}

// KnowsEvent reports whether the gateway knows which scope an event's data requires.
func KnowsEvent(eventType string) bool {
	_, known := readScope(eventType)
	return known
}

// Anys returns texts as JSON decodes them.
func Anys[T ~string](values []T) (all []any) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// ProblemStatuses returns the status of each code of the gateway.
func ProblemStatuses() map[string]int {
	statuses := make(map[string]int)
	for _, kind := range problem.Kinds() {
		statuses[kind.Code] = kind.Status
	}
	return statuses
}

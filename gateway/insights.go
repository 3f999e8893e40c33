package gateway

import (
	"time"

	"aiv/insights"
	"aiv/store"
)

// recommendationDocument is an item of GET /v1/recommendations.
type recommendationDocument struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"`
	Category    string   `json:"category"`
	Title       string   `json:"title"`
	Summary     string   `json:"summary"`
	Priority    string   `json:"priority"`
	Status      string   `json:"status"`
	ModelIDs    []string `json:"model_ids"` // empty, as question_ids: none in particular
	QuestionIDs []string `json:"question_ids"`
	RunID       *string  `json:"run_id"`
	CreatedAt   string   `json:"created_at"`
	UpdatedAt   string   `json:"updated_at"`
	ScheduleID  *string  `json:"schedule_id"` // whose run it was derived from
}

// recommendationList is the list of recommendations, newest first.
var recommendationList = list[insights.RecommendationFilter, insights.Recommendation]{
	filters: []filter[insights.RecommendationFilter]{
		wordFilter("status", insights.RecommendationStatuses, func(f *insights.RecommendationFilter) *string { return &f.Status }),
		wordFilter("priority", insights.Priorities, func(f *insights.RecommendationFilter) *string { return &f.Priority }),
		wordFilter("category", insights.Categories, func(f *insights.RecommendationFilter) *string { return &f.Category }),
		textFilter("type", func(f *insights.RecommendationFilter) *string { return &f.Type }),
		runFilter("run_id", func(f *insights.RecommendationFilter) **store.ID { return &f.RunID }),
		timeFilter("created_from", func(f *insights.RecommendationFilter) **time.Time { return &f.From }),
		timeFilter("created_to", func(f *insights.RecommendationFilter) **time.Time { return &f.To }),
	},
	read:    ofAccount(insights.Recommendations),
	sortKey: func(r *insights.Recommendation) store.Position { return store.Position{Time: r.CreatedAt, ID: r.ID} },
	append:  encoded(newRecommendationDocument),
}

func newRecommendationDocument(r *insights.Recommendation) recommendationDocument {
	return recommendationDocument{
		ID: r.ID.Text("rec"), Type: r.Type, Category: r.Category, Title: r.Title, Summary: r.Summary, Priority: r.Priority,
		Status: r.Status, ModelIDs: r.ModelIDs, QuestionIDs: r.QuestionIDs, RunID: idOrNull("run", r.RunID),
		CreatedAt: store.FormatTime(r.CreatedAt), UpdatedAt: store.FormatTime(r.UpdatedAt), ScheduleID: idOrNull("sched", r.ScheduleID),
	}
}

// alertDocument is an item of GET /v1/alerts.
type alertDocument struct {
	ID            string   `json:"id"`
	Type          string   `json:"type"`
	Severity      string   `json:"severity"`
	Status        string   `json:"status"`
	Title         string   `json:"title"`
	Message       string   `json:"message"`
	Metric        *string  `json:"metric"` // defined by the analysis
	Direction     string   `json:"direction"`
	CurrentValue  *float64 `json:"current_value"`
	BaselineValue *float64 `json:"baseline_value"`
	ModelID       *string  `json:"model_id"`
	QuestionID    *string  `json:"question_id"`
	Country       *string  `json:"country"`
	RunID         *string  `json:"run_id"`
	DetectedAt    string   `json:"detected_at"`
	ResolvedAt    *string  `json:"resolved_at"` // null unless it is resolved
	BrandID       *string  `json:"brand_id"`
	ScheduleID    *string  `json:"schedule_id"`
}

// alertList is the list of alerts, the latest detection first.
var alertList = list[insights.AlertFilter, insights.Alert]{
	filters: []filter[insights.AlertFilter]{
		wordFilter("status", insights.AlertStatuses, func(f *insights.AlertFilter) *string { return &f.Status }),
		wordFilter("severity", insights.Severities, func(f *insights.AlertFilter) *string { return &f.Severity }),
		wordFilter("type", insights.AlertTypes, func(f *insights.AlertFilter) *string { return &f.Type }),
		runFilter("run_id", func(f *insights.AlertFilter) **store.ID { return &f.RunID }),
		timeFilter("detected_from", func(f *insights.AlertFilter) **time.Time { return &f.From }),
		timeFilter("detected_to", func(f *insights.AlertFilter) **time.Time { return &f.To }),
	},
	read:    ofAccount(insights.Alerts),
	sortKey: func(a *insights.Alert) store.Position { return store.Position{Time: a.DetectedAt, ID: a.ID} },
	append:  encoded(newAlertDocument),
}

// newAlertDocument returns the wire form of an alert. Members without a value are null.
func newAlertDocument(a *insights.Alert) alertDocument {
	return alertDocument{
		ID: a.ID.Text("alert"), Type: a.Type, Severity: a.Severity, Status: a.Status, Title: a.Title, Message: a.Message,
		Metric: a.Metric, Direction: a.Direction, CurrentValue: a.CurrentValue, BaselineValue: a.BaselineValue,
		ModelID: a.ModelID, QuestionID: a.QuestionID, Country: a.Country, RunID: idOrNull("run", a.RunID),
		DetectedAt: store.FormatTime(a.DetectedAt), ResolvedAt: store.FormatTimeOrNil(a.ResolvedAt),
		BrandID: idOrNull("brand", a.BrandID), ScheduleID: idOrNull("sched", a.ScheduleID),
	}
}

// idOrNull returns an id as text, or nil, which is encoded as null.
func idOrNull(prefix string, id *store.ID) *string {
	if id == nil {
		return nil
	}
	return new(id.Text(prefix))
}

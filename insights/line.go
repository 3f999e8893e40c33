package insights

import (
	"slices"
	"time"

	"aiv/catalog"
	"aiv/insights/events"
	"aiv/store"
	"aiv/store/jsonl"
)

// typePattern is the form of names that the analysis defines: types of recommendations and metrics of alerts.
var typePattern = store.Pattern(`^[a-z][a-z0-9_]{0,63}$`)

// incoming has the rows of a file by kind.
type incoming struct {
	recommendations, alerts jsonl.Table
	candidates              []candidate
}

// newIncoming returns tables without rows, with the columns of a file. The columns of derived rows are not among
// them.
func newIncoming() *incoming {
	return &incoming{
		recommendations: jsonl.Table{
			Name: "recommendations",
			Columns: []string{"id", "account_id", "type", "category", "title", "summary", "priority", "status", "model_ids", "question_ids",
				"run_id", "created_at", "updated_at"},
			Checks: importChecks("recommendations"),
		},
		alerts: jsonl.Table{
			Name: "alerts",
			Columns: []string{"id", "account_id", "type", "severity", "status", "title", "message", "metric", "direction", "current_value",
				"baseline_value", "model_id", "question_id", "country", "run_id", "detected_at", "resolved_at"},
			// A line may open a derived alert again although another one with the same fingerprint is open.
			Checks: append(importChecks("alerts"), openTwice),
		},
	}
}

// count returns the numbers of lines that were read.
func (in *incoming) count() Imported { return Imported{in.recommendations.Len(), in.alerts.Len()} }

// add reads a line. It has the members that the API shows, and account_id; id is optional.
func (in *incoming) add(l *jsonl.Line) {
	switch jsonl.OneOf(l, "kind", "recommendation", "alert") {
	case "recommendation":
		r, account := in.recommendation(l), account(l)
		in.recommendations.Add(l, r.ID, account, r.Type, r.Category, r.Title, r.Summary, r.Priority, r.Status, r.ModelIDs, r.QuestionIDs,
			r.RunID, r.CreatedAt, r.UpdatedAt)
		// encode is called after the checks of the import. brand and schedule are of the row that exists, because a
		// file cannot change them.
		if r.Status == "suggested" {
			in.candidates = append(in.candidates, candidate{account: account, id: r.ID, eventType: events.RecommendationSuggested,
				encode: func(d EventData, _, schedule *store.ID) []byte {
					r.ScheduleID = schedule
					return d.Recommendation(&r)
				}})
		}
	case "alert":
		a, account := in.alert(l), account(l)
		in.alerts.Add(l, a.ID, account, a.Type, a.Severity, a.Status, a.Title, a.Message, a.Metric, a.Direction, a.CurrentValue,
			a.BaselineValue, a.ModelID, a.QuestionID, a.Country, a.RunID, a.DetectedAt, a.ResolvedAt)
		if a.Status == "open" {
			in.candidates = append(in.candidates, candidate{account: account, id: a.ID, eventType: events.AlertOpened,
				encode: func(d EventData, brand, schedule *store.ID) []byte {
					a.BrandID, a.ScheduleID = brand, schedule
					return d.Alert(&a)
				}})
		}
	// OneOf has recorded the error of the kind.
	default:
		l.SkipRest()
	}
}

// recommendation reads the members of a recommendation.
func (in *incoming) recommendation(l *jsonl.Line) Recommendation {
	r := Recommendation{
		ID:          in.id(l, "rec", "a recommendation"),
		Type:        jsonl.Matching(l, "type", typePattern()),
		Category:    jsonl.OneOf(l, "category", Categories...),
		Title:       jsonl.Text(l, "title"),
		Summary:     jsonl.Field[string](l, "summary"),
		Priority:    jsonl.OneOf(l, "priority", Priorities...),
		Status:      jsonl.OneOf(l, "status", RecommendationStatuses...),
		ModelIDs:    jsonl.List(l, "model_ids", catalog.IDPattern()),
		QuestionIDs: jsonl.List(l, "question_ids", catalog.IDPattern()),
		RunID:       jsonl.IDOrNull(l, "run_id", "run", "a run"),
		CreatedAt:   jsonl.Field[time.Time](l, "created_at"),
		UpdatedAt:   jsonl.Field[time.Time](l, "updated_at"),
	}
	// A time that is missing or wrong has its error already.
	if !r.UpdatedAt.IsZero() && r.UpdatedAt.Before(r.CreatedAt) {
		l.Errorf("updated_at must not be before created_at")
	}
	return r
}

// alert reads the members of an alert.
func (in *incoming) alert(l *jsonl.Line) Alert {
	a := Alert{
		ID:            in.id(l, "alert", "an alert"),
		Type:          jsonl.OneOf(l, "type", AlertTypes...),
		Severity:      jsonl.OneOf(l, "severity", Severities...),
		Status:        jsonl.OneOf(l, "status", AlertStatuses...),
		Title:         jsonl.Text(l, "title"),
		Message:       jsonl.Field[string](l, "message"),
		Metric:        jsonl.MatchingOrNull(l, "metric", typePattern()),
		Direction:     jsonl.OneOf(l, "direction", Directions...),
		CurrentValue:  jsonl.FieldOrNull[float64](l, "current_value"),
		BaselineValue: jsonl.FieldOrNull[float64](l, "baseline_value"),
		ModelID:       jsonl.MatchingOrNull(l, "model_id", catalog.IDPattern()),
		QuestionID:    jsonl.MatchingOrNull(l, "question_id", catalog.IDPattern()),
		Country:       jsonl.MatchingOrNull(l, "country", catalog.CountryPattern()),
		RunID:         jsonl.IDOrNull(l, "run_id", "run", "a run"),
		DetectedAt:    jsonl.Field[time.Time](l, "detected_at"),
		ResolvedAt:    jsonl.FieldOrNull[time.Time](l, "resolved_at"),
	}
	// The time of the resolution and the status must agree, as a constraint of the table requires.
	switch resolved := a.Status == "resolved"; {
	case !l.Has("resolved_at") || !slices.Contains(AlertStatuses, a.Status): // reported already
	case resolved && a.ResolvedAt == nil:
		l.Errorf("resolved_at must be set, as status is resolved")
	case !resolved && a.ResolvedAt != nil:
		l.Errorf("resolved_at must be null, as status is %s", a.Status)
	case resolved && a.ResolvedAt.Before(a.DetectedAt):
		l.Errorf("resolved_at must not be before detected_at")
	}
	return a
}

// id returns the id of the line, or a new one.
func (in *incoming) id(l *jsonl.Line, prefix, of string) store.ID {
	if l.Has("id") {
		return jsonl.ID(l, "id", prefix, of)
	}
	return store.NewID()
}

// account reads the account of a line.
func account(l *jsonl.Line) store.ID { return jsonl.ID(l, "account_id", "acct", "an account") }

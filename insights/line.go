package insights

import (
	"regexp"
	"slices"
	"time"

	"aiv/store"
)

var (
	catalogID   = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)
	wordForm    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	countryForm = regexp.MustCompile(`^[A-Z]{2}$`)
)

// incoming is a file's rows by kind.
type incoming struct {
	recommendations, alerts store.Incoming
	newID                   func() store.ID
}

func newIncoming(newID func() store.ID) *incoming {
	return &incoming{
		newID: newID,
		recommendations: store.Incoming{
			Table: "recommendations",
			Columns: []string{"id", "account_id", "type", "category", "title", "summary", "priority", "status", "model_ids", "question_ids",
				"run_id", "created_at", "updated_at"},
			Refusals: refusals("recommendations"),
		},
		alerts: store.Incoming{
			Table: "alerts",
			Columns: []string{"id", "account_id", "type", "severity", "status", "title", "message", "metric", "direction", "current_value",
				"baseline_value", "model_id", "question_id", "country", "run_id", "detected_at", "resolved_at"},
			Refusals: refusals("alerts"),
		},
	}
}

// add reads a line: its id, if it has one, its account, and the members as the API shows them.
func (in *incoming) add(l *store.Line) {
	switch store.Word(l, "kind", "recommendation", "alert") {
	case "recommendation":
		r := in.recommendation(l)
		in.recommendations.Add(l, r.ID, account(l), r.Type, r.Category, r.Title, r.Summary, r.Priority, r.Status, r.ModelIDs, r.QuestionIDs,
			r.RunID, r.CreatedAt, r.UpdatedAt)
	case "alert":
		a := in.alert(l)
		in.alerts.Add(l, a.ID, account(l), a.Type, a.Severity, a.Status, a.Title, a.Message, a.Metric, a.Direction, a.CurrentValue,
			a.BaselineValue, a.ModelID, a.QuestionID, a.Country, a.RunID, a.DetectedAt, a.ResolvedAt)
	default:
		l.SkipRest()
	}
}

func (in *incoming) recommendation(l *store.Line) Recommendation {
	r := Recommendation{
		ID:          in.id(l, "rec", "a recommendation"),
		Type:        store.Matching(l, "type", wordForm),
		Category:    store.Word(l, "category", Categories...),
		Title:       store.Text(l, "title"),
		Summary:     store.Field[string](l, "summary"),
		Priority:    store.Word(l, "priority", Priorities...),
		Status:      store.Word(l, "status", RecommendationStatuses...),
		ModelIDs:    store.List(l, "model_ids", catalogID),
		QuestionIDs: store.List(l, "question_ids", catalogID),
		RunID:       store.IdentityOrNull(l, "run_id", "run", "a run"),
		CreatedAt:   store.Field[time.Time](l, "created_at"),
		UpdatedAt:   store.Field[time.Time](l, "updated_at"),
	}
	if !r.UpdatedAt.IsZero() && r.UpdatedAt.Before(r.CreatedAt) {
		l.Fault("updated_at must not be before created_at")
	}
	return r
}

func (in *incoming) alert(l *store.Line) Alert {
	a := Alert{
		ID:            in.id(l, "alert", "an alert"),
		Type:          store.Word(l, "type", AlertTypes...),
		Severity:      store.Word(l, "severity", Severities...),
		Status:        store.Word(l, "status", AlertStatuses...),
		Title:         store.Text(l, "title"),
		Message:       store.Field[string](l, "message"),
		Metric:        store.MatchingOrNull(l, "metric", wordForm),
		Direction:     store.Word(l, "direction", Directions...),
		CurrentValue:  store.Field[store.Null[float64]](l, "current_value").Ptr(),
		BaselineValue: store.Field[store.Null[float64]](l, "baseline_value").Ptr(),
		ModelID:       store.MatchingOrNull(l, "model_id", catalogID),
		QuestionID:    store.MatchingOrNull(l, "question_id", catalogID),
		Country:       store.MatchingOrNull(l, "country", countryForm),
		RunID:         store.IdentityOrNull(l, "run_id", "run", "a run"),
		DetectedAt:    store.Field[time.Time](l, "detected_at"),
		ResolvedAt:    store.Field[store.Null[time.Time]](l, "resolved_at").Ptr(),
	}
	switch resolved := a.Status == "resolved"; {
	case !l.Has("resolved_at") || !slices.Contains(AlertStatuses, a.Status): // a fault that has been told
	case resolved && a.ResolvedAt == nil:
		l.Fault("resolved_at must be set, as status is resolved")
	case !resolved && a.ResolvedAt != nil:
		l.Fault("resolved_at must be null, as status is %s", a.Status)
	case resolved && a.ResolvedAt.Before(a.DetectedAt):
		l.Fault("resolved_at must not be before detected_at")
	}
	return a
}

// id reads the line's id, if it has one. One that can't be read is replaced, so that it does not seem to stand twice.
func (in *incoming) id(l *store.Line, prefix, of string) store.ID {
	if l.Has("id") {
		if id := store.Identity(l, "id", prefix, of); id != (store.ID{}) {
			return id
		}
	}
	return in.newID()
}

func account(l *store.Line) store.ID { return store.Identity(l, "account_id", "acct", "an account") }

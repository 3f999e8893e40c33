package insights_test

import (
	"fmt"
	"testing"
	"time"

	"aiv/insights"
	"aiv/store"
)

// recommendations returns the recommendations of an account.
func (s *site) recommendations(c customer) []insights.Recommendation {
	s.t.Helper()
	found, err := insights.Recommendations(s.t.Context(), s.Pool, c.account, insights.RecommendationFilter{}, store.Page{Limit: 10})
	must(s.t, err)
	return found
}

// alerts returns the alerts of an account that a filter selects.
func (s *site) alerts(c customer, f insights.AlertFilter) []insights.Alert {
	s.t.Helper()
	found, err := insights.Alerts(s.t.Context(), s.Pool, c.account, f, store.Page{Limit: 10})
	must(s.t, err)
	return found
}

// TestImportedMembersAreRead: every member that was imported is read.
func TestImportedMembersAreRead(t *testing.T) {
	s := newHotSite(t)
	c := s.customer()
	rec, alert, bare, run := store.NewID(), store.NewID(), store.NewID(), ref("run_id", "run", c.run)
	s.load(
		c.recommendation(idOf("rec", rec), run, `updated_at:"2026-01-02T01:00:00.1234567+01:00"`),
		c.alert(idOf("alert", alert), run, `status:"resolved"`, at("resolved_at", 3), at("detected_at", 2)),
		c.alert(idOf("alert", bare), "metric:null", "current_value:null", "baseline_value:null", "model_id:null",
			"question_id:null", "country:null", `message:""`, `direction:"none"`),
	)
	equal(t, "recommendations", []insights.Recommendation{{
		ID: rec, Type: "add_faq", Category: "on_page", Title: "Title", Summary: "Summary", Priority: "low",
		Status: "suggested", ModelIDs: []string{"m"}, QuestionIDs: []string{}, RunID: &c.run, CreatedAt: day(1),
		UpdatedAt: day(2).Add(123456 * time.Microsecond),
	}}, s.recommendations(c))
	equal(t, "alerts", []insights.Alert{{
		ID: alert, Type: "visibility_drop", Severity: "low", Status: "resolved", Title: "Title", Message: "Message",
		Metric: new("visibility"), Direction: "down", CurrentValue: new(0.25), BaselineValue: new(0.5), ModelID: new("m"),
		QuestionID: new("q"), Country: new("IT"), RunID: &c.run, DetectedAt: day(2), ResolvedAt: new(day(3)),
	}, {
		ID: bare, Type: "visibility_drop", Severity: "low", Status: "open", Title: "Title", Direction: "none",
		DetectedAt: day(1),
	}}, s.alerts(c, insights.AlertFilter{}))
}

// TestFilters: filters select the alerts of a severity or worse, and of the account's own run. The golden files have
// the other filters and those of recommendations.
func TestFilters(t *testing.T) {
	s := newHotSite(t)
	c, other := s.customer(), s.customer()
	s.load(
		c.alert(`title:"1"`, `severity:"critical"`),
		c.alert(`title:"2"`, at("detected_at", 2), `severity:"medium"`, `status:"acknowledged"`),
		c.alert(`title:"3"`, at("detected_at", 3), `severity:"high"`, ref("run_id", "run", c.run)),
		c.alert(`title:"4"`, at("detected_at", 4)),
		c.alert(`title:"5"`, at("detected_at", 5), `severity:"critical"`, `status:"resolved"`, at("resolved_at", 6)),
		other.alert(`title:"6"`, at("detected_at", 6), `severity:"critical"`, ref("run_id", "run", other.run)),
	)
	type filter = insights.AlertFilter
	for _, test := range []struct {
		filter filter
		want   string
	}{
		{filter{Severity: "low"}, "54321"},
		{filter{Severity: "medium"}, "5321"},
		{filter{Severity: "high"}, "531"},
		{filter{Severity: "critical"}, "51"},
		{filter{Severity: "mild"}, ""},
		{filter{Severity: "high", Status: "open"}, "31"},
		{filter{Severity: "high", From: new(day(2)), To: new(day(5))}, "3"},
		{filter{Severity: "medium", RunID: &c.run}, "3"},
		{filter{RunID: &other.run}, ""},
	} {
		got := ""
		for _, a := range s.alerts(c, test.filter) {
			got += a.Title
		}
		equal(t, fmt.Sprintf("%+v", test.filter), test.want, got)
	}
}

// TestValuesMatchConstraints: the tables accept exactly the values that the package declares.
func TestValuesMatchConstraints(t *testing.T) {
	s := newHotSite(t)
	for constraint, want := range map[string][]string{
		"recommendations_category_check": insights.Categories, "recommendations_priority_check": insights.Priorities,
		"recommendations_status_check": insights.RecommendationStatuses, "alerts_severity_check": insights.Severities,
		"alerts_status_check": insights.AlertStatuses, "alerts_direction_check": insights.Directions,
	} {
		var got []string
		must(t, s.Pool.QueryRow(t.Context(), `
SELECT array_agg(m[1]) FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''(\w+)''::', 'g') m
WHERE conname = $1`, constraint).Scan(&got))
		equal(t, constraint, want, got)
	}
}

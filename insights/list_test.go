package insights_test

import (
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

// TestImportedMembersAreRead: every member that was imported is read. The golden files have the filters.
func TestImportedMembersAreRead(t *testing.T) {
	s := newSite(t)
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
	alerts, err := insights.Alerts(t.Context(), s.Pool, c.account, insights.AlertFilter{}, store.Page{Limit: 10})
	must(t, err)
	equal(t, "alerts", []insights.Alert{{
		ID: alert, Type: "visibility_drop", Severity: "low", Status: "resolved", Title: "Title", Message: "Message",
		Metric: new("visibility"), Direction: "down", CurrentValue: new(0.25), BaselineValue: new(0.5), ModelID: new("m"),
		QuestionID: new("q"), Country: new("IT"), RunID: &c.run, DetectedAt: day(2), ResolvedAt: new(day(3)),
	}, {
		ID: bare, Type: "visibility_drop", Severity: "low", Status: "open", Title: "Title", Direction: "none",
		DetectedAt: day(1),
	}}, alerts)
}

package insights_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/insights"
	"aiv/store"
)

var utc = cmp.Transformer("UTC", time.Time.UTC)

// TestImportedMembersAreRead: every member that was imported is read.
func TestImportedMembersAreRead(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c := newCustomer(t, pool)
	rec, alert, bare := store.NewID(), store.NewID(), store.NewID()
	must(t, newImport(t, pool)(
		c.recommendation("id:"+quoted(rec, "rec"), "run_id:"+quoted(c.run, "run"), `updated_at:"2026-01-02T01:00:00.1234567+01:00"`),
		c.alert("id:"+quoted(alert, "alert"), "run_id:"+quoted(c.run, "run"), `status:"resolved"`, "resolved_at:"+dayText(3), "detected_at:"+dayText(2)),
		c.alert("id:"+quoted(bare, "alert"), "metric:null", "current_value:null", "baseline_value:null", "model_id:null",
			"question_id:null", "country:null", `message:""`, `direction:"none"`),
	))
	recommendations, err := insights.Recommendations(t.Context(), pool, c.account, insights.RecommendationFilter{}, store.Page{Limit: 10})
	must(t, err)
	wantRecommendations := []insights.Recommendation{{
		ID: rec, Type: "add_faq", Category: "on_page", Title: "Title", Summary: "Summary", Priority: "low", Status: "suggested",
		ModelIDs: []string{"m"}, QuestionIDs: []string{}, RunID: &c.run, CreatedAt: day(1), UpdatedAt: day(2).Add(123456 * time.Microsecond),
	}}
	if diff := cmp.Diff(wantRecommendations, recommendations, utc); diff != "" {
		t.Errorf("recommendations (-want +got):\n%s", diff)
	}
	alerts, err := insights.Alerts(t.Context(), pool, c.account, insights.AlertFilter{}, store.Page{Limit: 10})
	must(t, err)
	wantAlerts := []insights.Alert{{
		ID: alert, Type: "visibility_drop", Severity: "low", Status: "resolved", Title: "Title", Message: "Message", Metric: new("visibility"),
		Direction: "down", CurrentValue: new(0.25), BaselineValue: new(0.5), ModelID: new("m"), QuestionID: new("q"), Country: new("IT"),
		RunID: &c.run, DetectedAt: day(2), ResolvedAt: new(day(3)),
	}, {
		ID: bare, Type: "visibility_drop", Severity: "low", Status: "open", Title: "Title", Direction: "none", DetectedAt: day(1),
	}}
	if diff := cmp.Diff(wantAlerts, alerts, utc); diff != "" {
		t.Errorf("alerts (-want +got):\n%s", diff)
	}
}

func TestRecommendationFilters(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	must(t, newImport(t, pool)(
		c.recommendation(`title:"1"`),
		c.recommendation(`title:"2"`, "created_at:"+dayText(2), "updated_at:"+dayText(9), `status:"done"`, `category:"technical"`),
		c.recommendation(`title:"3"`, "created_at:"+dayText(3), "updated_at:"+dayText(3), `priority:"high"`, `type:"fix_schema"`),
		c.recommendation(`title:"4"`, "created_at:"+dayText(4), "updated_at:"+dayText(4), `status:"done"`, "run_id:"+quoted(c.run, "run")),
		other.recommendation(`title:"other"`, "created_at:"+dayText(5), "updated_at:"+dayText(5), "run_id:"+quoted(other.run, "run")),
	))
	tests := []struct {
		filter insights.RecommendationFilter
		want   string
	}{
		{insights.RecommendationFilter{}, "4321"},
		{insights.RecommendationFilter{Status: "done"}, "42"},
		{insights.RecommendationFilter{Status: "dismissed"}, ""},
		{insights.RecommendationFilter{Priority: "low"}, "421"},
		{insights.RecommendationFilter{Category: "technical"}, "2"},
		{insights.RecommendationFilter{Type: "fix_schema"}, "3"},
		{insights.RecommendationFilter{RunID: &c.run}, "4"},
		{insights.RecommendationFilter{RunID: &other.run}, ""},
		{insights.RecommendationFilter{From: new(day(2)), To: new(day(4))}, "32"},
		{insights.RecommendationFilter{From: new(day(4))}, "4"},
		{insights.RecommendationFilter{To: new(day(2))}, "1"},
		{insights.RecommendationFilter{Status: "done", Category: "on_page", Priority: "low", Type: "add_faq", RunID: &c.run, From: new(day(1)), To: new(day(9))}, "4"},
		{insights.RecommendationFilter{Status: "done", Category: "on_page", To: new(day(4))}, ""},
	}
	for _, test := range tests {
		found, err := insights.Recommendations(t.Context(), pool, c.account, test.filter, store.Page{Limit: 10})
		must(t, err)
		got := ""
		for _, r := range found {
			got += r.Title
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.filter, got, test.want)
		}
	}
}

func TestAlertFilters(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	must(t, newImport(t, pool)(
		c.alert(`title:"1"`, `severity:"critical"`),
		c.alert(`title:"2"`, "detected_at:"+dayText(2), `severity:"medium"`, `status:"acknowledged"`),
		c.alert(`title:"3"`, "detected_at:"+dayText(3), `severity:"high"`, `type:"run_failed"`, "run_id:"+quoted(c.run, "run")),
		c.alert(`title:"4"`, "detected_at:"+dayText(4)),
		c.alert(`title:"5"`, "detected_at:"+dayText(5), `severity:"critical"`, `status:"resolved"`, "resolved_at:"+dayText(6)),
		other.alert(`title:"other"`, "detected_at:"+dayText(6), `severity:"critical"`),
	))
	tests := []struct {
		filter insights.AlertFilter
		want   string
	}{
		{insights.AlertFilter{}, "54321"},
		{insights.AlertFilter{Severity: "low"}, "54321"},
		{insights.AlertFilter{Severity: "medium"}, "5321"},
		{insights.AlertFilter{Severity: "high"}, "531"},
		{insights.AlertFilter{Severity: "critical"}, "51"},
		{insights.AlertFilter{Severity: "mild"}, ""},
		{insights.AlertFilter{Severity: "high", Status: "open"}, "31"},
		{insights.AlertFilter{Status: "acknowledged"}, "2"},
		{insights.AlertFilter{Type: "run_failed"}, "3"},
		{insights.AlertFilter{RunID: &c.run, Severity: "medium"}, "3"},
		{insights.AlertFilter{RunID: &other.run}, ""},
		{insights.AlertFilter{From: new(day(2)), To: new(day(5))}, "432"},
		{insights.AlertFilter{From: new(day(2)), To: new(day(5)), Severity: "high"}, "3"},
	}
	for _, test := range tests {
		found, err := insights.Alerts(t.Context(), pool, c.account, test.filter, store.Page{Limit: 10})
		must(t, err)
		got := ""
		for _, a := range found {
			got += a.Title
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.filter, got, test.want)
		}
	}
}

// TestPagesDuringImports: reading page by page returns each row that existed at the start once and in order, while
// imports add newer rows. Rows with the same time are ordered by id.
func TestPagesDuringImports(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c := newCustomer(t, pool)
	importLines := newImport(t, pool)
	lines := func(day int, severity string) []string {
		at := dayText(day)
		return []string{c.recommendation("created_at:"+at, "updated_at:"+at),
			c.alert("detected_at:"+at, `severity:"`+severity+`"`)}
	}
	var first []string
	for i := range 40 {
		first = append(first, lines(1+i/10, insights.Severities[i%4])...)
	}
	must(t, importLines(first...))
	for _, test := range []struct {
		name, rows string
		list       func(store.Page) ([]store.Position, error)
	}{
		{"recommendations", "created_at AS at, id FROM recommendations",
			func(page store.Page) (found []store.Position, err error) {
				rows, err := insights.Recommendations(t.Context(), pool, c.account, insights.RecommendationFilter{}, page)
				for _, r := range rows {
					found = append(found, store.Position{Time: r.CreatedAt, ID: r.ID})
				}
				return found, err
			}},
		{"alerts, high or worse", "detected_at AS at, id FROM alerts WHERE severity IN ('critical', 'high')",
			func(page store.Page) (found []store.Position, err error) {
				rows, err := insights.Alerts(t.Context(), pool, c.account, insights.AlertFilter{Severity: "high"}, page)
				for _, a := range rows {
					found = append(found, store.Position{Time: a.DetectedAt, ID: a.ID})
				}
				return found, err
			}},
	} {
		for _, limit := range []int{7, 10} {
			rows, err := pool.Query(t.Context(), `SELECT `+test.rows+` ORDER BY at DESC, id DESC`)
			must(t, err)
			want, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p store.Position, err error) {
				return p, row.Scan(&p.Time, &p.ID)
			})
			must(t, err)
			var got []store.Position
			for page := (store.Page{Limit: limit}); ; page.After = &got[len(got)-1] {
				rows, err := test.list(page)
				must(t, err)
				got = append(got, rows[:min(limit, len(rows))]...)
				if len(rows) <= limit {
					break
				}
				must(t, importLines(lines(20, "high")...))
			}
			if diff := cmp.Diff(want, got, utc); diff != "" {
				t.Errorf("%s by %d (-want +got):\n%s", test.name, limit, diff)
			}
		}
	}
}

// TestValuesMatchConstraints: the tables accept exactly the values that the package declares.
func TestValuesMatchConstraints(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	for constraint, want := range map[string][]string{
		"recommendations_category_check": insights.Categories, "recommendations_priority_check": insights.Priorities,
		"recommendations_status_check": insights.RecommendationStatuses,
		"alerts_severity_check":        insights.Severities, "alerts_status_check": insights.AlertStatuses, "alerts_direction_check": insights.Directions,
	} {
		var got []string
		err := pool.QueryRow(t.Context(), `
SELECT array_agg(m[1]) FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''(\w+)''::', 'g') m WHERE conname = $1`, constraint).Scan(&got)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", constraint, err, diff)
		}
	}
}

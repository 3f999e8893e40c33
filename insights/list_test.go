package insights_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights"
	"aiv/store"
	"aiv/store/storetest"
)

var utc = cmp.Transformer("UTC", time.Time.UTC)

// TestImportedMembersAreRead: every member that was imported is read.
func TestImportedMembersAreRead(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c := newCustomer(t, pool)
	rec, alert, bare := store.NewID(), store.NewID(), store.NewID()
	err := newImport(t, pool)(
		c.recommendation("id:"+quoted(rec, "rec"), "run_id:"+quoted(c.run, "run"), `updated_at:"2026-01-02T01:00:00.1234567+01:00"`),
		c.alert("id:"+quoted(alert, "alert"), "run_id:"+quoted(c.run, "run"), `status:"resolved"`, "resolved_at:"+dayText(3), "detected_at:"+dayText(2)),
		c.alert("id:"+quoted(bare, "alert"), "metric:null", "current_value:null", "baseline_value:null", "model_id:null",
			"question_id:null", "country:null", `message:""`, `direction:"none"`),
	)
	if err != nil {
		t.Fatal(err)
	}
	recommendations, err := insights.Recommendations(t.Context(), pool, c.account, insights.RecommendationFilter{}, store.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	wantRecommendations := []insights.Recommendation{{
		ID: rec, Type: "add_faq", Category: "on_page", Title: "Title", Summary: "Summary", Priority: "low", Status: "suggested",
		ModelIDs: []string{"m"}, QuestionIDs: []string{}, RunID: &c.run, CreatedAt: day(1), UpdatedAt: day(2).Add(123456 * time.Microsecond),
	}}
	if diff := cmp.Diff(wantRecommendations, recommendations, utc); diff != "" {
		t.Errorf("recommendations (-want +got):\n%s", diff)
	}
	alerts, err := insights.Alerts(t.Context(), pool, c.account, insights.AlertFilter{}, store.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
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
	err := newImport(t, pool)(
		c.recommendation(`title:"1"`),
		c.recommendation(`title:"2"`, "created_at:"+dayText(2), "updated_at:"+dayText(9), `status:"done"`, `category:"technical"`),
		c.recommendation(`title:"3"`, "created_at:"+dayText(3), "updated_at:"+dayText(3), `priority:"high"`, `type:"fix_schema"`),
		c.recommendation(`title:"4"`, "created_at:"+dayText(4), "updated_at:"+dayText(4), `status:"done"`, "run_id:"+quoted(c.run, "run")),
		other.recommendation(`title:"other"`, "created_at:"+dayText(5), "updated_at:"+dayText(5), "run_id:"+quoted(other.run, "run")),
	)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		filter insights.RecommendationFilter
		want   string
	}{
		{insights.RecommendationFilter{}, "4 3 2 1"},
		{insights.RecommendationFilter{Status: "done"}, "4 2"},
		{insights.RecommendationFilter{Status: "dismissed"}, ""},
		{insights.RecommendationFilter{Priority: "low"}, "4 2 1"},
		{insights.RecommendationFilter{Category: "technical"}, "2"},
		{insights.RecommendationFilter{Type: "fix_schema"}, "3"},
		{insights.RecommendationFilter{RunID: &c.run}, "4"},
		{insights.RecommendationFilter{RunID: &other.run}, ""},
		{insights.RecommendationFilter{From: new(day(2)), To: new(day(4))}, "3 2"},
		{insights.RecommendationFilter{From: new(day(4))}, "4"},
		{insights.RecommendationFilter{To: new(day(2))}, "1"},
		{insights.RecommendationFilter{Status: "done", Category: "on_page", Priority: "low", Type: "add_faq", RunID: &c.run, From: new(day(1)), To: new(day(9))}, "4"},
		{insights.RecommendationFilter{Status: "done", Category: "on_page", To: new(day(4))}, ""},
	}
	for _, test := range tests {
		found, err := insights.Recommendations(t.Context(), pool, c.account, test.filter, store.Page{Limit: 10})
		got := titles(found, func(r insights.Recommendation) string { return r.Title })
		if err != nil || got != test.want {
			t.Errorf("%+v: %q (%v), want %q", test.filter, got, err, test.want)
		}
	}
}

func TestAlertFilters(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	err := newImport(t, pool)(
		c.alert(`title:"1"`, `severity:"critical"`),
		c.alert(`title:"2"`, "detected_at:"+dayText(2), `severity:"medium"`, `status:"acknowledged"`),
		c.alert(`title:"3"`, "detected_at:"+dayText(3), `severity:"high"`, `type:"run_failed"`, "run_id:"+quoted(c.run, "run")),
		c.alert(`title:"4"`, "detected_at:"+dayText(4)),
		c.alert(`title:"5"`, "detected_at:"+dayText(5), `severity:"critical"`, `status:"resolved"`, "resolved_at:"+dayText(6)),
		other.alert(`title:"other"`, "detected_at:"+dayText(6), `severity:"critical"`),
	)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		filter insights.AlertFilter
		want   string
	}{
		{insights.AlertFilter{}, "5 4 3 2 1"},
		{insights.AlertFilter{Severity: "low"}, "5 4 3 2 1"},
		{insights.AlertFilter{Severity: "medium"}, "5 3 2 1"},
		{insights.AlertFilter{Severity: "high"}, "5 3 1"},
		{insights.AlertFilter{Severity: "critical"}, "5 1"},
		{insights.AlertFilter{Severity: "mild"}, ""},
		{insights.AlertFilter{Severity: "high", Status: "open"}, "3 1"},
		{insights.AlertFilter{Status: "acknowledged"}, "2"},
		{insights.AlertFilter{Type: "run_failed"}, "3"},
		{insights.AlertFilter{RunID: &c.run, Severity: "medium"}, "3"},
		{insights.AlertFilter{RunID: &other.run}, ""},
		{insights.AlertFilter{From: new(day(2)), To: new(day(5))}, "4 3 2"},
		{insights.AlertFilter{From: new(day(2)), To: new(day(5)), Severity: "high"}, "3"},
	}
	for _, test := range tests {
		found, err := insights.Alerts(t.Context(), pool, c.account, test.filter, store.Page{Limit: 10})
		got := titles(found, func(a insights.Alert) string { return a.Title })
		if err != nil || got != test.want {
			t.Errorf("%+v: %q (%v), want %q", test.filter, got, err, test.want)
		}
	}
}

func titles[T any](found []T, title func(T) string) (all string) {
	for i, f := range found {
		if i > 0 {
			all += " "
		}
		all += title(f)
	}
	return all
}

// TestPagesDuringImports: reading page by page returns each row that existed at the start once and in order, while
// imports add newer rows. Rows with the same time are ordered by id.
func TestPagesDuringImports(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool, another := connect(t, url), connect(t, url)
	c := newCustomer(t, pool)
	var lines []string
	for i := range 40 {
		at := dayText(1 + i/10)
		lines = append(lines, c.recommendation("created_at:"+at, "updated_at:"+at), c.alert("detected_at:"+at, `severity:"`+insights.Severities[i%4]+`"`))
	}
	if err := newImport(t, pool)(lines...); err != nil {
		t.Fatal(err)
	}
	importMore := newImport(t, another)
	more := func() {
		if err := importMore(c.recommendation("created_at:"+dayText(20), "updated_at:"+dayText(20)), c.alert("detected_at:"+dayText(20), `severity:"high"`)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		want int
		list func(context.Context, store.Page) ([]store.Position, error)
	}{
		{"recommendations", 40, func(ctx context.Context, page store.Page) (found []store.Position, err error) {
			rows, err := insights.Recommendations(ctx, pool, c.account, insights.RecommendationFilter{}, page)
			for _, r := range rows {
				found = append(found, store.Position{Time: r.CreatedAt, ID: r.ID})
			}
			return found, err
		}},
		{"alerts, high or worse", 20, func(ctx context.Context, page store.Page) (found []store.Position, err error) {
			rows, err := insights.Alerts(ctx, pool, c.account, insights.AlertFilter{Severity: "high", To: new(day(10))}, page)
			for _, a := range rows {
				found = append(found, store.Position{Time: a.DetectedAt, ID: a.ID})
			}
			return found, err
		}},
	}
	for _, test := range tests {
		whole, err := test.list(t.Context(), store.Page{Limit: 200})
		if err != nil || len(whole) < test.want {
			t.Fatalf("%s: %d (%v)", test.name, len(whole), err)
		}
		newestFirst := func(a, b store.Position) int {
			if d := b.Time.Compare(a.Time); d != 0 {
				return d
			}
			return b.ID.Compare(a.ID)
		}
		if !slices.IsSortedFunc(whole, newestFirst) {
			t.Errorf("%s are not ordered", test.name)
		}
		for _, limit := range []int{7, 10} {
			whole, err := test.list(t.Context(), store.Page{Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			var got []store.Position
			page := store.Page{Limit: limit}
			for {
				rows, err := test.list(t.Context(), page)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, rows[:min(limit, len(rows))]...)
				if len(rows) <= limit {
					break
				}
				page.After = &got[len(got)-1]
				more()
			}
			if diff := cmp.Diff(whole, got, utc); diff != "" {
				t.Errorf("%s by %d (-want +got):\n%s", test.name, limit, diff)
			}
		}
	}
}

// TestOtherAccountsAreInvisible: no list and no cursor position returns rows of another account.
func TestOtherAccountsAreInvisible(t *testing.T) {
	t.Parallel()
	pool := newHotPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	id := store.NewID()
	if err := newImport(t, pool)(other.recommendation("id:"+quoted(id, "rec")), other.alert("id:"+quoted(id, "alert"))); err != nil {
		t.Fatal(err)
	}
	for _, after := range []*store.Position{nil, {Time: day(31), ID: id}} {
		page := store.Page{After: after, Limit: 10}
		recommendations, err := insights.Recommendations(t.Context(), pool, c.account, insights.RecommendationFilter{}, page)
		if err != nil || len(recommendations) != 0 {
			t.Errorf("after %v: %v (%v)", after, recommendations, err)
		}
		for _, severity := range append(insights.Severities, "") {
			alerts, err := insights.Alerts(t.Context(), pool, c.account, insights.AlertFilter{Severity: severity}, page)
			if err != nil || len(alerts) != 0 {
				t.Errorf("after %v, %q: %v (%v)", after, severity, alerts, err)
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

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := store.OpenHot(t.Context(), url, 4)
	if err != nil {
		t.Fatal(fmt.Errorf("connecting: %w", err))
	}
	t.Cleanup(pool.Close)
	return pool
}

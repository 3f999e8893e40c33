package insights_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/store"
	"aiv/store/storetest"
)

// TestEvents: an import records an event each time that a recommendation becomes suggested or an alert open, and no other.
func TestEvents(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	c := newCustomer(t, pool)
	importLines := newImport(t, pool)
	alert, rec := "id:"+quoted(store.NewID(), "alert"), "id:"+quoted(store.NewID(), "rec")
	both := store.NewID()
	resolved := []string{`status:"resolved"`, "resolved_at:" + dayText(2)}
	for _, step := range []struct {
		name  string
		lines []string
		want  []string // the events that are new, by type and title
	}{
		{"new", []string{c.alert(alert), c.recommendation(rec)}, []string{"alert.opened Title", "recommendation.suggested Title"}},
		{"the same", []string{c.alert(alert), c.recommendation(rec)}, nil},
		{"another title", []string{c.alert(alert, `title:"B"`), c.recommendation(rec, `title:"B"`)}, nil},
		{"done", []string{c.alert(append(resolved, alert)...), c.recommendation(rec, `status:"done"`)}, nil},
		{"again", []string{c.alert(alert, `title:"C"`), c.recommendation(rec)}, []string{"alert.opened C", "recommendation.suggested Title"}},
		{"new but not open", []string{c.alert(`status:"acknowledged"`), c.alert(resolved...), c.recommendation(`status:"dismissed"`)}, nil},
		{"without an id", []string{c.alert(), c.alert(`title:"D"`)}, []string{"alert.opened D", "alert.opened Title"}},
		{"a recommendation", []string{c.recommendation("id:" + quoted(both, "rec"))}, []string{"recommendation.suggested Title"}},
		{"an alert with its UUID", []string{c.alert("id:" + quoted(both, "alert"))}, []string{"alert.opened Title"}},
		{"with an invalid line", []string{c.alert(), c.alert("run_id:" + quoted(store.NewID(), "run"))}, nil},
	} {
		if err := importLines(step.lines...); (err != nil) != (step.name == "with an invalid line") {
			t.Fatalf("%s: %v", step.name, err)
		}
		rows, err := pool.Query(t.Context(), `
DELETE FROM events WHERE account_id = $1 AND data->>'id' = subject_id::text RETURNING type || ' ' || (data->>'title') AS event`, c.account)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, sorted(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func sorted(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	slices.Sort(texts)
	return texts
}

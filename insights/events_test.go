package insights_test

import (
	"slices"
	"testing"

	"aiv/store"
	"aiv/store/storetest"
)

// TestImportRecordsEvents: an import records an event each time that a recommendation becomes suggested or an alert open, and no
// other.
func TestImportRecordsEvents(t *testing.T) {
	s := newSite(t)
	c, both := s.customer(), store.NewID()
	alert, rec := idOf("alert", store.NewID()), idOf("rec", store.NewID())
	resolved := []string{`status:"resolved"`, at("resolved_at", 2)}
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
		{"a recommendation", []string{c.recommendation(idOf("rec", both))}, []string{"recommendation.suggested Title"}},
		{"an alert with its UUID", []string{c.alert(idOf("alert", both))}, []string{"alert.opened Title"}},
		{"with an invalid line", []string{c.alert(), c.alert(ref("run_id", "run", store.NewID()))}, nil},
	} {
		if err := s.try(step.lines...); (err != nil) != (step.name == "with an invalid line") {
			t.Fatalf("%s: %v", step.name, err)
		}
		equal(t, step.want, storetest.Value[[]string](t, s.Pool, `
WITH new AS (
  DELETE FROM events WHERE account_id = $1 AND data->>'id' = subject_id::text RETURNING type || ' ' || (data->>'title') AS event)
SELECT array_agg(event ORDER BY event) FROM new`, c.account), step.name)
	}
}

// TestLargeImport: an import may have more events than one statement writes, and more values of recommendations and of
// alerts than a statement can have parameters, 65,535.
func TestLargeImport(t *testing.T) {
	s := newSite(t)
	c := s.customer()
	must(t, s.try(slices.Concat(slices.Repeat([]string{c.recommendation()}, 5100), slices.Repeat([]string{c.alert()}, 3900))...))
	equal(t, "5100 3900 9000", storetest.Value[string](t, s.Pool,
		`SELECT concat_ws(' ', (SELECT count(*) FROM recommendations), (SELECT count(*) FROM alerts), (SELECT count(*) FROM events))`),
		"recommendations, alerts and events")
}

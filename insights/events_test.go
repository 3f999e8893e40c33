package insights_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/store"
	"aiv/store/storetest"
)

// TestImportRecordsEvents: an import records an event each time that a recommendation becomes suggested or an alert open, and no
// other.
func TestImportRecordsEvents(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
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
		var got []string
		must(t, pool.QueryRow(t.Context(), `
WITH new AS (
  DELETE FROM events WHERE account_id = $1 AND data->>'id' = subject_id::text RETURNING type || ' ' || (data->>'title') AS event)
SELECT array_agg(event ORDER BY event) FROM new`, c.account).Scan(&got))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestEventsLockInOrder: an import that waits for the queue of an account has locked those of lower ids only, as all
// others do. Else two transactions could wait for each other. It has more events than one statement writes, and more
// values of recommendations and of alerts than a statement can have parameters, 65,535.
func TestEventsLockInOrder(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about locks of rows of one server")
	}
	pool := newPool(t)
	low, high := newCustomer(t, pool), newCustomer(t, pool)
	if low.account.Compare(high.account) > 0 {
		low, high = high, low
	}
	execute(t, pool, `INSERT INTO webhook_queues (account_id) VALUES ($1), ($2)`, low.account, high.account)
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // for failures
	const lock = `SELECT FROM webhook_queues WHERE account_id = $1 FOR UPDATE NOWAIT`
	_, err = tx.Exec(t.Context(), lock, low.account)
	must(t, err)
	imported := make(chan error, 1)
	go func() {
		imported <- newImport(t, pool)(slices.Concat(slices.Repeat([]string{high.recommendation()}, 5100),
			slices.Repeat([]string{high.alert()}, 3900), []string{low.alert()})...)
	}()
	storetest.UntilWaiting(t, pool, "transactionid")
	if _, err := tx.Exec(t.Context(), lock, high.account); err != nil {
		t.Errorf("the queue of the higher id: %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-imported)
	var recommendations, alerts int
	const written = `SELECT (SELECT count(*) FROM recommendations), (SELECT count(*) FROM alerts)`
	must(t, pool.QueryRow(t.Context(), written).Scan(&recommendations, &alerts))
	if recommendations != 5100 || alerts != 3901 {
		t.Errorf("%d recommendations and %d alerts are written", recommendations, alerts)
	}
}

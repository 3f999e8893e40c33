package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/cmd/aiv/capability"
	"aiv/insights"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestFill starts the demonstration five times in one database.
func TestFill(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	storetest.Exec(t, pool, `UPDATE schema_migrations SET applied_at = now()`) // as in a new database, whose history is older
	start := func() (key string) {
		t.Helper()
		secrets, err := Fill(t.Context(), pool)
		must(t, err)
		return secrets.Key
	}
	first := start()
	checkDemoData(t, pool)
	checkLaterStarts(t, pool, start, first)

	// Jobs that a folder of an earlier version has waiting do not end as those of the sample runs. The earlier run is one
	// that the sample data does not have: the account is created later, so all ids differ.
	storetest.Exec(t, pool, `
UPDATE accounts SET created_at = created_at + interval '1 second';
DELETE FROM recommendations; DELETE FROM alerts; DELETE FROM schedule_occurrences; DELETE FROM schedules; DELETE FROM brands`)
	start()
	// 2 × 3 failed runs; 2 × 2 canceled runs, and the 3 that were open.
	equal(t, []int64{6, 7}, numbers(t, pool, `
SELECT count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'canceled') FROM measurement_runs`), "ended runs")
}

// numbers returns the numbers of a row.
func numbers(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (found []int64) {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	must(t, err)
	values, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	must(t, err)
	for _, v := range values {
		found = append(found, v.(int64))
	}
	return found
}

// checkDemoData: each list of the API shows something, and what it shows hangs together.
func checkDemoData(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for column, words := range map[string][]string{
		"measurement_runs.status": runs.Statuses, "recommendations.category": insights.Categories, "recommendations.priority": insights.Priorities,
		"recommendations.status": insights.RecommendationStatuses, "alerts.type": insights.AlertTypes, "alerts.severity": insights.Severities,
		"alerts.status": insights.AlertStatuses, "alerts.direction": insights.Directions,
	} {
		table, name, _ := strings.Cut(column, ".")
		for _, word := range words {
			found := fmt.Sprintf(`SELECT LEAST(count(*), 1) FROM %s WHERE %s = $1`, table, name)
			equal(t, []int64{1}, numbers(t, pool, found, word), column+" "+word)
		}
	}
	equal(t, []int64{3, 3, 1}, numbers(t, pool, `
SELECT (SELECT count(DISTINCT schedule_id) FROM schedule_occurrences WHERE evaluated_at IS NOT NULL),
  (SELECT count(DISTINCT schedule_id) FROM alerts),
  (SELECT LEAST(count(*), 1) FROM recommendations WHERE schedule_id IS NOT NULL)`), "schedules with a history, with alerts, and with recommendations")

	storetest.Verify(t, pool, capability.Invariants()...)
	// What else contradicts itself. Each query finds nothing.
	for what, query := range map[string]string{
		"times in the wrong order": `
SELECT id FROM measurement_runs WHERE created_at > started_at OR COALESCE(started_at, created_at) > finished_at OR finished_at > now()
  OR created_at > now() - interval '10 seconds' OR created_at < now() - interval '90 days'`,
		"answers that are not counted": `SELECT id FROM measurement_runs WHERE jobs_counted <> jobs_completed + jobs_failed`,
		"insights from before their run had ended": `
SELECT i.id FROM (SELECT account_id, id, run_id, detected_at AS at FROM alerts UNION ALL SELECT account_id, id, run_id, CASE WHEN schedule_id IS NULL THEN created_at ELSE updated_at END FROM recommendations) i
JOIN measurement_runs r ON r.account_id = i.account_id AND r.id = i.run_id WHERE i.at < r.finished_at OR r.finished_at IS NULL OR i.at > now()`,
	} {
		rows, err := pool.Query(t.Context(), query)
		must(t, err)
		if found, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(found) > 0 {
			t.Errorf("%s: %v (%v)", what, found, err)
		}
	}
}

// checkLaterStarts: the second start adds nothing but a key; one after a start that was interrupted adds what is missing;
// one after requests changed and deleted schedules keeps them so.
func checkLaterStarts(t *testing.T, pool *pgxpool.Pool, start func() (key string), first string) {
	t.Helper()
	before := tables(t, pool)
	if start() == first {
		t.Error("the second key is that of the first start")
	}
	equal(t, before, tables(t, pool), "rows after the second start")
	storetest.Exec(t, pool, `DELETE FROM recommendations; DELETE FROM alerts; DELETE FROM idempotency_records`)
	for _, table := range schema.Tables(capability.All) {
		if p := table.Purge; table.Name != "measurement_runs" && (p.With != "" || p.Prepare != nil || p.Delete != nil) {
			storetest.Exec(t, pool, `
DELETE FROM `+table.Name+` WHERE run_id IN (SELECT id FROM measurement_runs WHERE created_at > now() - interval '17 days')`)
		}
	}
	storetest.Exec(t, pool, `DELETE FROM measurement_runs WHERE created_at > now() - interval '17 days'`)
	start()
	equal(t, before, tables(t, pool), "rows after a start after an interrupted one")
	equal(t, []int64{3, 1}, numbers(t, pool, `
SELECT count(*), count(*) FILTER (WHERE revoked_at IS NULL) FROM credentials`), "all keys, and those that are valid, after three starts")

	storetest.Exec(t, pool, `UPDATE schedules SET name = 'Renamed' WHERE name = 'Boots'`)
	var account, id store.ID
	must(t, pool.QueryRow(t.Context(), `SELECT account_id, id FROM schedules WHERE name = 'Running shoes'`).Scan(&account, &id))
	must(t, schedules.New(schedules.Config{Pool: pool}).Delete(t.Context(), account, id))
	start()
	equal(t, []int64{2, 2}, numbers(t, pool, `
SELECT count(*), count(*) FILTER (WHERE revoked_at IS NULL) FROM schedules s JOIN credentials c ON c.id = s.credential_id`),
		"schedules after one was deleted, and those with the new key")
}

// tables is what the demonstration writes, but for its keys and what refers to them, and for how often rows were
// locked.
func tables(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	tables := map[string]string{}
	written := []schema.Capability{catalog.Capability, runs.Capability, insights.Capability, brands.Capability, visibility.Capability,
		{Tables: []schema.Table{{Name: "plans"}, {Name: "accounts"}}}}
	for _, owned := range schema.Tables(written) {
		var text string
		must(t, pool.QueryRow(t.Context(), `
SELECT COALESCE(string_agg(line, E'\n' ORDER BY line), '')
FROM (SELECT (to_jsonb(r) - '{credential_id,additions}'::text[])::text AS line FROM `+owned.Name+` r) t`).Scan(&text))
		tables[owned.Name] = text
	}
	return tables
}

// TestWeeksOfTheCalendar: whenever the account is created, the runs of a week are in one week of the calendar, so that
// the outage empties one.
func TestWeeksOfTheCalendar(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) // a Sunday
	for at := start; at.Before(start.Add(24 * time.Hour)); at = at.Add(10 * time.Minute) {
		d := past{account: auth.Account{CreatedAt: at}}
		for n := range weeks {
			first, last := d.at(&sampleRuns[3*n]), d.at(&sampleRuns[3*n+2])
			if !first.Truncate(week).Equal(last.Truncate(week)) || !first.Before(last) || first.Truncate(week).Weekday() != time.Monday {
				t.Fatalf("account of %v: the runs of week %d are of %v and %v", at, n+1, first, last)
			}
		}
	}
}

func TestMain(m *testing.M) { storetest.Main(m) }

var must, equal = storetest.Must, storetest.Equal

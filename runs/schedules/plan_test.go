package schedules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/storetest"
)

// TestOccurrencesReadLittle: a page of occurrences reads about as many rows as it has, wherever it begins.
func TestOccurrencesReadLittle(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, &database{pool: storetest.Hot(t)})
	made := s.create(t, change("hourly", schedules.Hourly))
	s.past(t, 1, 2400, "1 hour", 100)
	seen := &storetest.Statements{}
	traced := storetest.WithTracer(t, s.pool, seen)
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			storetest.Exec(t, s.pool, `ANALYZE schedules, schedule_occurrences`)
		}
		explains := storetest.NewSession(t, s.pool)
		for _, status := range []string{"", "created", "skipped"} {
			for _, after := range []*store.Position{nil, {Time: time.Now().AddDate(0, -1, 0), ID: made.ID}} {
				seen.Taken()
				must(t, ignore(schedules.Occurrences(t.Context(), traced, s.account, made.ID, status, store.Page{Limit: 20, After: after})))
				for _, statement := range seen.Taken() {
					if !strings.Contains(statement.SQL, "ORDER BY") {
						continue
					}
					if cost := explains.Explain(t, statement.SQL, statement.Args...); cost.Rows > 200 {
						t.Errorf("status %q, after %v: %d rows\n%s", status, after, cost.Rows, statement.SQL)
					}
				}
			}
		}
	}
}

// TestTasksWithoutWorkReadLittle: tasks that find nothing to do read few rows, however many schedules and occurrences
// there are. They look every 500 ms in each process.
func TestTasksWithoutWorkReadLittle(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, &database{pool: storetest.Hot(t)})
	s.create(t, change("hourly", schedules.Hourly))
	s.exec(t, `
INSERT INTO schedules SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'name', n))).*
FROM schedules s, generate_series(1, 3000) n`)
	s.past(t, 1, 2, "1 hour", 100)
	seen := &storetest.Statements{}
	traced := storetest.WithTracer(t, s.pool, seen)
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			s.exec(t, `ANALYZE`)
		}
		explains := storetest.NewSession(t, s.pool)
		for _, task := range s.scheduler(t, traced).Tasks() {
			seen.Taken()
			must(t, task.Run(t.Context()))
			explained := 0
			for _, statement := range seen.Taken() {
				if !strings.Contains(statement.SQL, "WHERE") { // a setting
					continue
				}
				explained++
				if cost := explains.Explain(t, statement.SQL, statement.Args...); cost.Rows > 20 {
					t.Errorf("%s, analyzed %t: %d rows\n%s", task.Name, analyzed, cost.Rows, statement.SQL)
				}
			}
			if explained == 0 {
				t.Errorf("no statement of %s was seen", task.Name)
			}
		}
	}
}

// TestDueAreHashed: each due schedule is looked up among the accounts that had their turn. To compare it with each of
// them would take half a second for 20,000 schedules and 10,000 accounts.
func TestDueAreHashed(t *testing.T) {
	s := newSite(t)
	if storetest.OnCitus() {
		t.Skip("Citus plans for the values of the parameters, so that PostgreSQL hashes ALL")
	}
	seen := &storetest.Statements{}
	must(t, s.scheduler(t, storetest.WithTracer(t, s.pool, seen)).CarryOut(t.Context()))
	due := seen.Taken()[0]
	plan, err := store.Collect(t.Context(), s.pool, pgx.RowTo[string], "EXPLAIN "+due.SQL, due.Args...)
	must(t, err)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "hashed SubPlan") {
		t.Errorf("the plan hashes nothing:\n%s", text)
	}
}

// TestEvaluationReadsNoOldRecommendations: an evaluation reads few recommendations, however many of its schedule are done.
func TestEvaluationReadsNoOldRecommendations(t *testing.T) {
	m := newMonitoredOn(t, &database{pool: storetest.Hot(t)})
	m.exec(t, `
INSERT INTO recommendations (account_id, id, type, category, title, summary, priority, status, model_ids, question_ids, created_at,
  updated_at, schedule_id, fingerprint)
SELECT $1, gen_random_uuid(), 'citation_gap', 'off_page', 'title', '', 'low', 'done', '{}', '{}', now(), now(), $2, 'citation_gap ' || n
FROM generate_series(1, 3000) n`, m.account, m.schedule.ID)
	m.exec(t, `ANALYZE recommendations`)
	m.finish(t, m.next(t), mentions(0, 3))
	seen := &storetest.Statements{}
	must(t, m.scheduler(t, storetest.WithTracer(t, m.pool, seen)).Evaluate(t.Context()))
	taken := seen.Taken()
	read := taken[slices.IndexFunc(taken, func(s storetest.Statement) bool { return strings.Contains(s.SQL, "status_imported FROM rec") })]
	if cost := storetest.Explain(t, m.pool, read.SQL, read.Args...); cost.Rows > 100 {
		t.Errorf("%d rows\n%s", cost.Rows, read.SQL)
	}
}

package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"

	"github.com/jackc/pgx/v5"
)

// drop is a run after which an alert opens.
func (m *monitored) drop(t *testing.T) (run store.ID) {
	t.Helper()
	m.run(t, mentions(4, 0))
	run = m.next(t)
	m.finish(t, run, mentions(0, 3))
	return run
}

// TestEvaluatedOnce: a run is evaluated once, by any number of processes, also if the transaction of one is rolled back
// at its end.
func TestEvaluatedOnce(t *testing.T) {
	m := newMonitored(t)
	m.drop(t)
	failing := config(m.dispatch)
	failed := 0
	failing.Record = func(ctx context.Context, tx store.Tx, causes []events.Cause) error {
		failed++
		return errors.Join(webhooks.Record(ctx, tx, causes), errors.New("the process ends"))
	}
	must(t, m.schedulerOf(failing).Evaluate(t.Context()))
	equal(t, "1 ", fmt.Sprint(failed, " ", m.outlineAlerts(t)), "evaluations that were rolled back, and their alerts")
	storetest.AtOnce(6, func(int) {
		if err := m.another().Evaluate(t.Context()); err != nil {
			t.Error(err)
		}
	})
	equal(t, "competitor_gained open Ostrel, visibility_drop open Kovalt", m.outlineAlerts(t))
	equal(t, 2, len(m.events(t, events.AlertOpened)), "events of alerts")
	equal(t, len(m.recommendations(t)), len(m.events(t, events.RecommendationSuggested)), "events of recommendations")
	m.verify(t)
}

// TestEvaluationLocks: while an evaluation waits, settlements of the run's account and due times do not. What it has
// read has changed when it goes on, so it reads again.
func TestEvaluationLocks(t *testing.T) {
	m := newMonitored(t)
	run := m.drop(t)
	other := m.create(t, change("other", schedules.Daily))
	held := storetest.Begin(t, m.pool, `UPDATE schedule_accounts SET version = version + 1`)
	ended := make(chan error, 1)
	go func() { ended <- m.process.Evaluate(t.Context()) }()
	storetest.UntilWaiting(t, m.pool, "transactionid")
	m.due(t, other.ID, time.Now().Add(-time.Minute).Truncate(time.Minute))
	must(t, m.another().CarryOut(t.Context()))
	equal(t, schedules.OccurrenceCreated, m.occurrences(t, other.ID)[0].Status, "the due time of another schedule")
	must(t, pgx.BeginFunc(t.Context(), m.pool, func(tx pgx.Tx) error { // as a settlement of another run locks
		if _, err := tx.Exec(t.Context(), `UPDATE measurement_runs SET jobs_counted = jobs_counted WHERE id = $1`, run); err != nil {
			return err
		}
		return webhooks.Record(t.Context(), tx, []events.Cause{{AccountID: m.account, ID: store.NewID(), Type: events.RunCompleted,
			SubjectID: store.NewID(), Data: []byte("{}")}})
	}))
	must(t, held.Commit(t.Context()))
	must(t, <-ended)
	equal(t, "competitor_gained open Ostrel, visibility_drop open Kovalt", m.outlineAlerts(t))
}

// TestReadsAreSmall: tasks that find nothing to do, and pages of occurrences, read few rows, however many schedules and
// occurrences there are. The tasks look every 500 ms in each process.
func TestReadsAreSmall(t *testing.T) {
	t.Parallel()
	s := siteOf(t, newDatabase(t))
	made := s.create(t, change("hourly", schedules.Hourly))
	s.past(t, 1, 2400, "1 hour", 100)
	s.exec(t, `
INSERT INTO schedules SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'name', n))).*
FROM schedules s, generate_series(1, 3000) n`)
	seen := &storetest.Statements{}
	traced := storetest.WithTracer(t, s.pool, seen)
	reads := s.schedulerOf(config(traced)).Tasks()
	for _, status := range []string{"", "created", "skipped"} {
		for _, after := range []*store.Position{nil, {Time: time.Now().AddDate(0, -1, 0), ID: made.ID}} {
			page := store.Page{Limit: 20, After: after}
			reads = append(reads, task.Task{Name: fmt.Sprintf("page %q %v", status, after), Run: func(ctx context.Context) error {
				return ignore(schedules.Occurrences(ctx, traced, s.account, made.ID, status, page))
			}})
		}
	}
	for _, statistics := range []string{``, `ANALYZE`} {
		s.exec(t, statistics)
		explains := storetest.NewSession(t, s.pool)
		for _, read := range reads {
			must(t, read.Run(t.Context()))
			explained := 0
			for _, statement := range seen.Taken() {
				if !strings.Contains(statement.SQL, "WHERE") { // a setting
					continue
				}
				explained++
				if cost := explains.Explain(t, statement.SQL, statement.Args...); cost.Rows > 200 {
					t.Errorf("%s, statistics %q: %d rows\n%s", read.Name, statistics, cost.Rows, statement.SQL)
				}
			}
			if explained == 0 {
				t.Errorf("no statement of %s was seen", read.Name)
			}
		}
	}
}

package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/storetest"

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
	failing := config(m.pool)
	failed := 0
	failing.Record = func(ctx context.Context, tx store.Tx, causes []events.Cause) error {
		failed++
		return errors.Join(webhooks.Record(ctx, tx, causes), errors.New("the process ends"))
	}
	must(t, m.schedulerOf(failing).Evaluate(t.Context()))
	equal(t, "1 ", fmt.Sprint(failed, " ", m.outlineAlerts(t)), "evaluations that were rolled back, and their alerts")
	storetest.AtOnce(6, func(int) {
		if err := m.scheduler(m.pool).Evaluate(t.Context()); err != nil {
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
	must(t, m.scheduler(m.pool).CarryOut(t.Context()))
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

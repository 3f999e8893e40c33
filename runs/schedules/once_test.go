package schedules_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"aiv/cmd/aiv/capability"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
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
	equal(t, 1, failed, "evaluations that were rolled back")
	equal(t, "", m.outlineAlerts(t))
	storetest.AtOnce(6, func(int) {
		if err := m.scheduler(t, m.pool).Evaluate(t.Context()); err != nil {
			t.Error(err)
		}
	})
	alerts := m.alerts(t)
	recommendations := len(m.events(t, events.RecommendationSuggested))
	if got := len(m.events(t, events.AlertOpened)); got != len(alerts) || got == 0 || recommendations == 0 {
		t.Errorf("%d events of %d alerts, %d of recommendations", got, len(alerts), recommendations)
	}
	equal(t, 0, m.count(t, `SELECT count(*) FROM (SELECT FROM events GROUP BY subject_id, type HAVING count(*) > 1) e`),
		"events that were recorded twice")
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
	must(t, m.scheduler(t, m.pool).CarryOut(t.Context()))
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

// TestDeletedRuns: a purge detaches the runs of occurrences, and an erasure deletes the schedules first.
func TestDeletedRuns(t *testing.T) {
	m := newMonitored(t)
	m.drop(t)
	must(t, m.process.Evaluate(t.Context()))
	m.advance(-2 * time.Hour) // a purge refuses a clock that is ahead
	purger := &runs.Purger{Pool: m.pool, Actor: "test", Tables: schema.Tables(capability.All)}
	must(t, ignore(purger.FinishedBefore(t.Context(), time.Now().Add(time.Minute), -time.Hour)))
	equal(t, (*store.ID)(nil), m.get(t, m.schedule.ID).LastRunID, "the last run after a purge")
	for _, o := range m.occurrences(t, m.schedule.ID) {
		if o.RunID != nil || o.Status != schedules.OccurrenceCreated {
			t.Errorf("after a purge: %+v", o)
		}
	}
	m.verify(t)
	for _, table := range purger.Tables {
		if table.Erase.Before != nil {
			must(t, ignore(table.Erase.Before(t.Context(), m.pool, table.Name, m.account)))
		}
	}
	if _, err := schedules.Get(t.Context(), m.pool, m.account, m.schedule.ID); !errors.Is(err, schedules.ErrNotFound) {
		t.Errorf("after an erasure: %v", err)
	}
}

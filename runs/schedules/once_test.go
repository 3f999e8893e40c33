package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
	var failed atomic.Int32
	failing.Record = func(ctx context.Context, tx store.Tx, causes []events.Cause) error {
		failed.Add(1)
		return errors.Join(webhooks.Record(ctx, tx, causes), errors.New("the process ends"))
	}
	must(t, m.schedulerOf(failing).Evaluate(t.Context()))
	if failed.Load() != 1 || m.outlineAlerts(t) != "" {
		t.Fatalf("%d evaluations were rolled back; alerts: %s", failed.Load(), m.outlineAlerts(t))
	}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if err := m.scheduler(t, m.pool).Evaluate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	alerts := m.alerts(t)
	recommendations := len(m.events(t, events.RecommendationSuggested))
	if got := len(m.events(t, events.AlertOpened)); got != len(alerts) || got == 0 || recommendations == 0 {
		t.Errorf("%d events of %d alerts, %d of recommendations", got, len(alerts), recommendations)
	}
	equal(t, 0, m.count(t, `SELECT count(*) FROM (SELECT FROM events GROUP BY subject_id, type HAVING count(*) > 1) e`),
		"events that were recorded twice")
	m.verify(t)
}

// TestEvaluationLocks: while two evaluations wait, settlements of the run's account and due times do not. What they
// have read has changed when they go on: one reads again and evaluates the run, and the other finds that this is done.
func TestEvaluationLocks(t *testing.T) {
	m := newMonitored(t)
	run := m.drop(t)
	other := m.create(t, change("other", schedules.Daily))
	held, err := m.pool.Begin(t.Context())
	must(t, err)
	defer held.Rollback(context.WithoutCancel(t.Context()))
	must(t, ignore(held.Exec(t.Context(), `UPDATE schedule_accounts SET version = version + 1`)))
	ended := make(chan error, 2)
	for _, process := range []*schedules.Scheduler{m.process, m.scheduler(t, m.pool)} {
		go func() { ended <- process.Evaluate(t.Context()) }()
	}
	storetest.Eventually(t, "the evaluations wait", func() bool {
		return storetest.Waiting(t, m.pool) == 2
	})
	m.due(t, other.ID, time.Now().Add(-time.Minute).Truncate(time.Minute))
	must(t, m.scheduler(t, m.pool).CarryOut(t.Context()))
	if got := outline(m.occurrences(t, other.ID)); got != "created" && got != "created missed" {
		t.Errorf("the due time of another schedule: %s", got)
	}
	must(t, pgx.BeginFunc(t.Context(), m.pool, func(tx pgx.Tx) error { // as a settlement of another run locks
		if _, err := tx.Exec(t.Context(), `UPDATE measurement_runs SET jobs_counted = jobs_counted WHERE id = $1`, run); err != nil {
			return err
		}
		return webhooks.Record(t.Context(), tx, []events.Cause{{AccountID: m.account, ID: store.NewID(), Type: events.RunCompleted, SubjectID: store.NewID(), Data: []byte("{}")}})
	}))
	must(t, held.Commit(t.Context()))
	must(t, <-ended)
	must(t, <-ended)
	if opened := len(m.events(t, events.AlertOpened)); opened == 0 || opened != len(m.alerts(t)) {
		t.Errorf("%d alerts were opened; there are: %s", opened, m.outlineAlerts(t))
	}
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

// TestAccountsTakeTurnsInEvaluations: a run that becomes final while an account has others to evaluate does not wait for
// all of these.
func TestAccountsTakeTurnsInEvaluations(t *testing.T) {
	s := newSite(t)
	var last *store.ID // the run of another account
	for i := range 4 {
		if i == 3 {
			s.account, s.credential = s.customer(t)
		}
		id := s.create(t, change(fmt.Sprint(i), schedules.Daily)).ID
		s.due(t, id, time.Now().Add(-time.Second))
		must(t, s.scheduler(t, s.pool).CarryOut(t.Context()))
		last = s.occurrences(t, id)[0].RunID
		if i < 3 {
			s.cancel(t, last)
		}
	}
	var once sync.Once
	end := storetest.OnStatement{
		Matches: func(sql string) bool { return strings.Contains(sql, "SET evaluated_at") },
		Do:      func(*pgx.Conn) { once.Do(func() { s.cancel(t, last) }) },
	}
	must(t, s.scheduler(t, storetest.WithTracer(t, s.pool, end)).Evaluate(t.Context()))
	if s.count(t, `
SELECT count(*) FROM schedule_occurrences
WHERE evaluated_at > (SELECT evaluated_at FROM schedule_occurrences WHERE run_id = $1)`, last) == 0 {
		t.Error("the late run was not evaluated before the last one of the other account")
	}
}

package schedules_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/runs/schedules"
	"aiv/store/storetest"
)

// TestScheduleNamesAndNumberAreBounded: names are unique and an account has at most 100 schedules, also if they are
// created at once.
func TestScheduleNamesAndNumberAreBounded(t *testing.T) {
	s := newSite(t)
	storetest.AtOnce(2, func(worker int) {
		for n := range 110 {
			_, err := s.schedules.Create(t.Context(), s.account, s.credential, change(fmt.Sprint((n+worker)%110), schedules.Daily))
			if err != nil && !errors.Is(err, schedules.ErrTooMany) && !errors.As(err, new(*schedules.ExistsError)) {
				t.Error(err)
			}
		}
	})
	const schedulesAndNames = `SELECT concat_ws(' ', count(*), count(DISTINCT name)) FROM schedules`
	equal(t, "100 100", storetest.Value[string](t, s.pool, schedulesAndNames), "schedules and their names")
}

// TestOnlyDueTimesMoveTheNext: a change of the due times sets the next one, and no other change does.
func TestOnlyDueTimesMoveTheNext(t *testing.T) {
	s := newSite(t)
	c := change("weekly", schedules.Weekly)
	c.Weekday = &schedules.Word{Value: new("monday")}
	made := s.create(t, c)
	_, other := s.customer(t)
	update := func(c schedules.Change) *schedules.Listed {
		t.Helper()
		changed, err := s.schedules.Update(t.Context(), s.account, made.ID, other, c)
		must(t, err)
		return changed
	}
	renamed := update(schedules.Change{Name: new("renamed"), Cadence: new(schedules.Weekly), Weekday: c.Weekday})
	if !renamed.NextAt.Equal(*made.NextAt) || renamed.CredentialID != other || renamed.Name != "renamed" {
		t.Errorf("renamed: %+v", renamed)
	}
	daily := update(schedules.Change{Cadence: new(schedules.Daily)})
	if daily.NextAt.Sub(daily.Now) > 24*time.Hour {
		t.Errorf("daily: %+v", daily)
	}
	s.exec(t, `UPDATE schedules SET last_due_at = $2 WHERE id = $1`, made.ID, daily.NextAt)
	if hourly := update(schedules.Change{Cadence: new(schedules.Hourly)}); !hourly.NextAt.After(*daily.NextAt) {
		t.Errorf("the next due time, %s, is not after the last one, %s", hourly.NextAt, daily.NextAt)
	}
	for _, status := range []string{schedules.Paused, schedules.Paused, schedules.Active} {
		if changed := update(schedules.Change{Status: &status}); (changed.NextAt == nil) != (status == schedules.Paused) {
			t.Errorf("%s: %+v", status, changed)
		}
	}
	equal(t, 1, len(s.events(t, events.SchedulePaused)), "events of pauses")
}

// TestChangeAtDueTime: a change and a due time at the same moment happen in one of the two orders.
func TestChangeAtDueTime(t *testing.T) {
	s := newSite(t)
	for n := range 24 {
		made := s.create(t, change(fmt.Sprint("due ", n), schedules.Daily))
		s.due(t, made.ID, made.NextAt.AddDate(0, 0, -1))
		ended := make(chan error, 1)
		go func() { ended <- s.process.CarryOut(t.Context()) }()
		var err error
		if n%3 == 2 {
			err = s.schedules.Delete(t.Context(), s.account, made.ID)
		} else {
			c := []schedules.Change{{Status: new(schedules.Paused)}, {Cadence: new(schedules.Hourly)}}[n%3]
			_, err = s.schedules.Update(t.Context(), s.account, made.ID, s.credential, c)
		}
		must(t, errors.Join(err, <-ended))
		must(t, s.process.CarryOut(t.Context())) // the change may have held the row
	}
	equal(t, 8, s.count(t, `SELECT count(*) FROM schedules WHERE status = 'paused'`), "paused schedules")
	equal(t, 8, s.count(t, `SELECT count(*) FROM schedules WHERE cadence = 'hourly' AND last_run_id IS NOT NULL AND next_at > now()`),
		"changed schedules with a run")
	equal(t, 16, s.count(t, `SELECT count(*) FROM schedules`), "schedules")
	s.verify(t) // the run of each
}

// TestClockSteps: a clock of the database that was ahead creates one run, and the same hours again create none.
func TestClockSteps(t *testing.T) {
	s := newSite(t)
	made := s.create(t, change("clock", schedules.Hourly))
	s.advance(t, 10*time.Hour)
	must(t, s.process.CarryOut(t.Context()))
	equal(t, "created missed×9", outline(s.occurrences(t, made.ID)), "after ten hours")
	s.cancel(t, s.get(t, made.ID).LastRunID)
	s.advance(t, -10*time.Hour)
	for range 9 {
		s.advance(t, time.Hour)
		must(t, s.process.CarryOut(t.Context()))
	}
	equal(t, 2, len(s.occurrences(t, made.ID)), "occurrences after the same hours again")
	s.advance(t, 2*time.Hour)
	must(t, s.process.CarryOut(t.Context()))
	if got := len(s.occurrences(t, made.ID)); got < 3 {
		t.Errorf("%d occurrences after a new hour", got)
	}
	s.verify(t)
}

// TestLargeAccountDelaysNoOther: when many schedules of one account are due, schedules of other accounts that are due at
// the same time do not wait for them. No schedule waits for those that another process has locked.
func TestLargeAccountDelaysNoOther(t *testing.T) {
	s := newSite(t)
	const accounts, each, many, locked = 5, 3, 12, 3
	large := s.account
	for n := range many {
		s.create(t, change(fmt.Sprint(n), schedules.Daily))
	}
	for range accounts {
		s.account, s.credential = s.customer(t)
		for n := range each {
			s.create(t, change(fmt.Sprint(n), schedules.Daily))
		}
	}
	s.exec(t, `UPDATE schedules SET next_at = date_trunc('minute', now())`)
	storetest.Begin(t, s.pool, "SELECT FROM schedules WHERE account_id = $1 ORDER BY next_at, id LIMIT $2 FOR UPDATE", large, locked)
	must(t, s.process.CarryOut(t.Context()))
	equal(t, many-locked+accounts*each, s.count(t, `SELECT count(*) FROM schedule_occurrences WHERE status = 'created'`), "runs")
	before := s.count(t, `SELECT count(*) FROM schedule_occurrences
WHERE account_id = $1 AND created_at < (SELECT max(created_at) FROM schedule_occurrences WHERE account_id <> $1)`, large)
	if before > each {
		t.Errorf("%d runs of the account were created before the others were done, want one in each of %d rounds", before, each)
	}
}

// TestPurgeKeepsTheLatestOccurrences: old occurrences are deleted, but not the latest ones. The role of aiv dispatch may
// execute all tasks.
func TestPurgeKeepsTheLatestOccurrences(t *testing.T) {
	m := newMonitored(t)
	m.past(t, 500, 505, "1 day", 2)
	m.exec(t, `UPDATE schedules SET last_due_at = (SELECT max(due_at) FROM schedule_occurrences)`)
	for _, task := range m.process.Tasks() {
		must(t, task.Run(t.Context()))
	}
	equal(t, "overlap created", outline(m.occurrences(t, m.schedule.ID)), "occurrences")
	must(t, ignore(schedules.ReadBacklog(t.Context(), m.dispatch)))
}

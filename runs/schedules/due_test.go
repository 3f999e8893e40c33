package schedules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store/storetest"
)

// outline returns occurrences in short, latest first: status or code, and the number of due times if there are several.
func outline(occurrences []schedules.Occurrence) string {
	var words []string
	for _, o := range occurrences {
		word := o.Status
		if o.Code != nil {
			word = *o.Code
		}
		if o.Count > 1 {
			word += fmt.Sprintf("×%d", o.Count)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// TestDueTimeIsCarriedOutAndEvaluated: a due time creates a run once, however many processes look for it and however
// often. The run is evaluated.
func TestDueTimeIsCarriedOutAndEvaluated(t *testing.T) {
	m := newMonitored(t)
	made := m.schedule
	must(t, m.process.CarryOut(t.Context()))
	equal(t, "", outline(m.occurrences(t, made.ID)), "before the due time")
	due := made.NextAt.Add(-time.Hour)
	m.due(t, made.ID, due)
	for range 3 {
		must(t, m.process.CarryOut(t.Context()))
		must(t, m.another().CarryOut(t.Context()))
	}
	found := m.occurrences(t, made.ID)
	if got := outline(found); got != "created" || !found[0].DueAt.Equal(due) || found[0].RunID == nil {
		t.Fatalf("occurrences: %s", got)
	}
	after := m.get(t, made.ID)
	if !after.NextAt.Equal(*made.NextAt) || !after.LastDueAt.Equal(due) || *after.LastRunID != *found[0].RunID ||
		!after.UpdatedAt.Equal(made.UpdatedAt) {
		t.Errorf("the schedule after its due time: %+v", after)
	}
	equal(t, fmt.Sprint("60 60 /v1/schedules/", made.ID.Text("sched"), " ", due.UTC().Format(time.RFC3339), " ", m.credential.UUID()),
		storetest.Value[string](t, m.pool, `
SELECT concat_ws(' ', (SELECT count(*) FROM measurement_jobs), (SELECT sum(jobs) FROM usage_records), route, key, r.credential_id)
FROM idempotency_records i JOIN measurement_runs r ON r.account_id = i.account_id AND r.id = i.run_id`), "the run")
	m.finish(t, *found[0].RunID, mentions(4, 0))
	must(t, m.process.Evaluate(t.Context()))
	if m.occurrences(t, made.ID)[0].EvaluatedAt == nil {
		t.Error("the run was not evaluated")
	}
	m.verify(t)
}

// TestOneRunAfterDowntime: after any time without a process at most one run follows, and one row covers what was
// missed.
func TestOneRunAfterDowntime(t *testing.T) {
	s := newSite(t)
	for _, missed := range []int{1, 2, 23, 10_000} {
		made := s.create(t, change(fmt.Sprint(missed), schedules.Hourly))
		last := made.NextAt.Add(-time.Hour)
		first := last.Add(-time.Duration(missed) * time.Hour)
		s.due(t, made.ID, first)
		must(t, s.process.CarryOut(t.Context()))
		found := s.occurrences(t, made.ID)
		want := "created missed"
		if missed > 1 {
			want += fmt.Sprintf("×%d", missed)
		}
		equal(t, want, outline(found), "after ", missed, " hours")
		if !found[0].DueAt.Equal(last) || !found[1].DueAt.Equal(first) || !found[1].LastDueAt.Equal(last.Add(-time.Hour)) {
			t.Errorf("after %d hours: %+v", missed, found)
		}
	}
	equal(t, 4, len(s.events(t, events.ScheduleSkipped)), "events of skipped due times")
	s.verify(t)
}

// TestReasonsToSkip has the reasons to skip a due time, in their order.
func TestReasonsToSkip(t *testing.T) {
	s := newSite(t)
	made := s.create(t, change("skipped", schedules.Hourly))
	carry := func() schedules.Occurrence {
		t.Helper()
		s.advance(t, time.Hour)
		must(t, s.process.CarryOut(t.Context()))
		return s.occurrences(t, made.ID)[0]
	}
	skips := func(code, detail string) {
		t.Helper()
		o := carry()
		if o.Code == nil || *o.Code != code || !strings.Contains(*o.Detail, detail) || strings.Contains(*o.Detail, "question_ids/5") {
			t.Errorf("got %+v, want code %s, detail %s, and no more than five faults", o, code, detail)
		}
	}
	refuse := func(code string) {
		r := &runs.Refusal{Check: "model_support"}
		for i := range 6 {
			r.Faults = append(r.Faults, runs.Fault{Code: code, Pointer: fmt.Sprintf("/question_ids/%d", i), Detail: "the question is archived"})
		}
		s.check = func(*runs.Proposal) error { return r }
	}
	created := carry()
	skips("overlap", created.RunID.Text("run"))
	s.cancel(t, created.RunID)
	must(t, ignore(s.admin.SetAccountQuota(t.Context(), s.account, true, new(int64(3)))))
	skips("job_quota_exceeded", "3 jobs per month")
	must(t, ignore(s.admin.SetAccountQuota(t.Context(), s.account, false, nil)))
	s.check = func(*runs.Proposal) error { return errors.New("the catalog cannot be read") }
	before := s.get(t, made.ID)
	carry()
	equal(t, before.NextAt, s.get(t, made.ID).NextAt, "the due time after a temporary error")
	s.process = s.another() // which does not wait for the next try
	for range 4 {
		refuse("question_archived")
		skips("question_archived", "/run/question_ids/3: the question is archived; /run/question_ids/4: the question is archived")
		refuse("provider_unavailable")
		skips("provider_unavailable", "/run/question_ids/0")
	}
	active := s.get(t, made.ID)
	equal(t, "active 4", fmt.Sprint(active.Status, " ", active.Refused), "after four refusals")
	refuse("question_archived")
	skips("question_archived", "")
	paused := s.get(t, made.ID)
	if paused.Status != schedules.Paused || *paused.PausedReason != "refused" || paused.NextAt != nil {
		t.Errorf("after five refusals: %+v", paused)
	}
	equal(t, 1, len(s.events(t, events.SchedulePaused)), "events of pauses")
	s.verify(t)
}

// TestSuccessorOfTheCredentialActs: a schedule acts for the newest valid successor of its credential, and is paused if
// there is none, or if that may not create runs.
func TestSuccessorOfTheCredentialActs(t *testing.T) {
	s := newSite(t)
	const revoked = `UPDATE credentials SET revoked_at = now() WHERE id = $1`
	for _, test := range []struct {
		rotations int
		then      string // changes the latest credential
		want      string // the status of the occurrence and the schedule, or the code of both
	}{
		{2, `UPDATE credentials SET expires_at = now() WHERE id <> $1`, "created active"},
		{1, revoked, "created active"},
		{0, revoked, "credential_revoked credential_revoked"},
		{0, `UPDATE credentials SET disabled_at = now(), revoked_at = now() WHERE id = $1`, "credential_revoked credential_revoked"},
		{0, `UPDATE credentials SET disabled_at = now() WHERE id = $1`, "credential_disabled credential_disabled"},
		{0, `UPDATE credentials SET expires_at = now() WHERE id = $1`, "credential_expired credential_expired"},
		{0, `UPDATE credentials SET scopes = '{runs:read}' WHERE id = $1`, "insufficient_scope insufficient_scope"},
		{0, `UPDATE accounts SET plan_code = 'none' WHERE id = (SELECT account_id FROM credentials WHERE id = $1)`,
			"entitlement_required entitlement_required"},
	} {
		s.account, s.credential = s.customer(t)
		made := s.create(t, change("acting", schedules.Daily))
		latest := s.credential
		for range test.rotations {
			next, err := s.admin.RotateKey(t.Context(), latest, time.Hour, nil)
			must(t, err)
			latest = next.ID
		}
		s.exec(t, test.then, latest)
		s.due(t, made.ID, made.NextAt.AddDate(0, 0, -1))
		must(t, s.process.CarryOut(t.Context()))
		after := s.get(t, made.ID)
		state, events := after.Status, len(s.events(t, events.SchedulePaused))+len(s.events(t, events.ScheduleSkipped))
		if after.PausedReason != nil {
			state = *after.PausedReason
		}
		equal(t, test.want, outline(s.occurrences(t, made.ID))+" "+state, test)
		paused := state != schedules.Active
		if (after.NextAt == nil) != paused || (events == 2) != paused || after.CredentialID != s.credential {
			t.Errorf("%+v: %d events, %+v", test, events, after)
		}
	}
	s.verify(t)
}

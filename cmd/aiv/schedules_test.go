package main

import (
	"regexp"
	"testing"

	"aiv/store/storetest"
)

// TestScheduleIsPausedAndResumed lists, pauses and resumes a schedule.
func TestScheduleIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	pool := consistent(t)
	url := pool.Config().ConnString()
	listed := prints{"schedules list -json", 0, `"last_status":"created","last_code":null,"credential_id":"cred_\w{26}"}]`}.expect(t, url)
	id := regexp.MustCompile(`sched_\w+`).FindString(listed)
	for _, command := range []prints{
		{"schedules list", 0, "active\tdaily 00:00 UTC"},
		{"schedules list -status paused", 0, `There are no schedules\.`},
		{"schedules pause " + id + " -note incident", 0, `is paused: operator; next due: none\.`},
		{"schedules pause " + id + " -note again", 0, `is paused: operator; next due: none\.`},
		{"status", 0, `0 active, 1 paused \(operator\)`},
		{"schedules resume " + id + " -note over -json", 0, `"status":"active","paused_reason":null`},
		{"schedules pause sched_00000000000000000000000000 -note x", 1,
			"there is no schedule sched_0{26}; see aiv schedules list"},
		{"schedules pause run_1 -note x", 2, "must be a schedule's id, sched_ and 26 characters; see aiv schedules list"},
		{"audit list -subject " + id, 0, `schedules\.resume`},
	} {
		command.expect(t, url)
	}
	storetest.Exec(t, pool, `UPDATE schedules SET status = 'paused', paused_reason = 'customer', next_at = NULL`)
	prints{"schedules resume " + id + " -note x", 1, "the customer paused"}.expect(t, url)
	var events int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE type = 'schedule.paused'`).Scan(&events); err != nil || events != 1 {
		t.Errorf("%d events of pauses (%v), want 1", events, err)
	}
}

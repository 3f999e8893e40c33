package jobs_test

import (
	"errors"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/store"
	"aiv/store/storetest"
)

// TestPurge: old answers are deleted and their jobs stay completed; attempts are kept until an hour after their run's end.
func TestPurge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	a := s.account(t)
	old, fresh := s.createRun(t, a, []string{"m1"}, 50, 50), s.createRun(t, a, []string{"m1"}, 1, 1)
	claims := 0
	for {
		got := claim(t, d, 500)
		claims += len(got)
		if len(got) == 0 {
			break
		}
		settle(t, d, jobs.Released, got[0])
		if len(got) > 1 {
			settle(t, d, jobs.Completed, got[1:]...)
		} else {
			settle(t, d, jobs.Completed, claim(t, d, 1)...)
			claims++
		}
	}
	// A step of the purge ends between the attempts of a job.
	s.exec(t, `INSERT INTO job_attempts SELECT account_id, id, ordinal, attempt, 'retry'
		FROM measurement_runs, generate_series(1, 500) ordinal, generate_series(10, 16) attempt WHERE id = $1`, old)
	s.exec(t, `INSERT INTO job_attempts SELECT account_id, id, 1, 10, 'retry' FROM measurement_runs WHERE id = $1`, fresh)
	attempts := s.count(t, `SELECT count(*) FROM job_attempts WHERE run_id = $1`, old)
	s.exec(t, `UPDATE measurement_runs SET started_at = now() - interval '26 h', finished_at = now() - interval '61 min' WHERE id = $1`, old)
	s.exec(t, `UPDATE job_results SET finished_at = now() - interval '25 h' WHERE run_id = $1`, old)
	s.exec(t, `INSERT INTO provider_minutes (provider_code, minute, claimed) VALUES ('p1', date_trunc('minute', now() - interval '25 h', 'UTC'), 1)`)
	if n, err := jobs.Purge(t.Context(), s.pool, 0); n != 0 || err != nil {
		t.Errorf("%d answers were deleted, %v", n, err)
	}
	if n := s.count(t, `SELECT count(*) FROM job_attempts WHERE run_id = $1`, old); n != 0 || attempts == 0 {
		t.Errorf("%d of %d attempts are left", n, attempts)
	}
	if n := s.count(t, `SELECT count(*) FROM job_attempts WHERE run_id = $1`, fresh); n != 1 {
		t.Errorf("%d attempts of a run that has just ended are left, want 1", n)
	}
	if n := s.count(t, `SELECT sum(claimed) FROM provider_minutes`); n != claims {
		t.Errorf("%d claims of the last minutes are left, want %d", n, claims)
	}
	ahead := storetest.WithClockAhead(t, s.pool, 48*time.Hour)
	if n, err := jobs.Purge(t.Context(), ahead, 24*time.Hour); n != 0 {
		t.Errorf("with a clock two days ahead: %d answers were deleted", n)
	} else if _, ok := errors.AsType[*store.ClockError](err); !ok {
		t.Errorf("with a clock two days ahead: got %v", err)
	}
	if n, err := jobs.Purge(t.Context(), s.pool, 24*time.Hour); n != 2500 || err != nil {
		t.Errorf("%d answers were deleted, %v, want 2500", n, err)
	}
	if n := s.count(t, `SELECT count(*) FROM job_results WHERE answer IS NOT NULL AND run_id = $1`, fresh); n != 1 {
		t.Error("the answer of today is gone")
	}
	// An answer of the same run may become old later. When the run is old itself, it is read for the last time.
	read := func() int {
		return s.count(t, `SELECT count(*) FROM measurement_runs WHERE NOT answers_deleted AND id = $1`, old)
	}
	for _, finished := range []string{"1 h", "25 h"} {
		s.exec(t, `UPDATE job_results SET answer = 'late' WHERE run_id = $1 AND ordinal = 2500`, old)
		if read() != 1 {
			t.Errorf("the run that ended less than a day ago is not read again")
		}
		s.exec(t, `UPDATE measurement_runs SET finished_at = now() - $2::interval WHERE id = $1`, old, finished)
		if n, err := jobs.Purge(t.Context(), s.pool, 24*time.Hour); n != 1 || err != nil {
			t.Errorf("%d answers were deleted, %v, want 1", n, err)
		}
	}
	if read() != 0 {
		t.Error("the run that ended a day ago is read again")
	}
	page, _, err := results.List(t.Context(), s.pool, a, old, results.Filter{}, 0, 1)
	must(t, err)
	if page[0].Status != "completed" || page[0].Answer != nil {
		t.Errorf("%+v", page[0])
	}
	if _, err := jobs.Purge(t.Context(), s.pool, time.Hour); err == nil {
		t.Error("answers may be kept for an hour only")
	}
	s.check(t)
}

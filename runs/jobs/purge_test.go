package jobs_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/store"
	"aiv/store/storetest"
)

// TestPurgeKeepsCompletedJobs: old answers are deleted and their jobs stay completed; attempts are kept until an hour after their run's
// end.
func TestPurgeKeepsCompletedJobs(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	d := s.dispatcher(t)
	a := s.account(t)
	old, fresh := s.createRun(t, a, []string{"m1"}, 50, 50), s.createRun(t, a, []string{"m1"}, 1, 1)
	claims := 0
	for got := claim(t, d, 500); len(got) > 0; got = claim(t, d, 500) {
		claims += len(got)
		settle(t, d, jobs.Completed, got...)
	}
	// A step of the purge ends between the attempts of a job.
	s.exec(t, `INSERT INTO job_attempts SELECT account_id, id, ordinal, attempt, 'retry'
		FROM measurement_runs, generate_series(1, 500) ordinal, generate_series(10, 16) attempt WHERE id = $1`, old)
	s.exec(t, `INSERT INTO job_attempts SELECT account_id, id, 1, 10, 'retry' FROM measurement_runs WHERE id = $1`, fresh)
	s.exec(t, `UPDATE measurement_runs SET started_at = now() - interval '26 h', finished_at = now() - interval '61 min' WHERE id = $1`, old)
	s.exec(t, `UPDATE job_results SET finished_at = now() - interval '25 h' WHERE run_id = $1`, old)
	s.exec(t, `INSERT INTO provider_minutes (provider_code, minute, claimed) VALUES ('p1', date_trunc('minute', now() - interval '25 h', 'UTC'), 1)`)
	if n, err := jobs.Purge(t.Context(), s.pool, 0, nil); n != 0 || err != nil {
		t.Errorf("%d answers were deleted, %v", n, err)
	}
	equal(t, 0, s.count(t, `SELECT count(*) FROM job_attempts WHERE run_id = $1`, old), "attempts of the old run")
	equal(t, 1, s.count(t, `SELECT count(*) FROM job_attempts WHERE run_id = $1`, fresh),
		"attempts of a run that has just ended are left")
	equal(t, claims, s.count(t, `SELECT sum(claimed) FROM provider_minutes`), "claims of the last minutes are left")
	ahead := storetest.WithClockAhead(t, s.pool, 48*time.Hour)
	if n, err := jobs.Purge(t.Context(), ahead, 24*time.Hour, nil); n != 0 {
		t.Errorf("with a clock two days ahead: %d answers were deleted", n)
	} else if _, ok := errors.AsType[*store.ClockError](err); !ok {
		t.Errorf("with a clock two days ahead: got %v", err)
	}
	if n, err := jobs.Purge(t.Context(), s.pool, 24*time.Hour, nil); n != 2500 || err != nil {
		t.Errorf("%d answers were deleted, %v, want 2500", n, err)
	}
	equal(t, 1, s.count(t, `SELECT count(*) FROM job_results WHERE answer IS NOT NULL AND run_id = $1`, fresh),
		"the answer of today is gone")
	page, _, err := results.List(t.Context(), s.pool, a, old, results.Filter{}, 0, 1)
	must(t, err)
	if page[0].Status != "completed" || page[0].Answer != nil {
		t.Errorf("%+v", page[0])
	}
	if _, err := jobs.Purge(t.Context(), s.pool, time.Hour, nil); err == nil {
		t.Error("answers may be kept for an hour only")
	}
	s.check(t)
}

// TestPurgedRuns: a run is recorded as one whose answers are deleted when it is old itself and has none.
func TestPurgedRuns(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	settle(t, d, jobs.Completed, claim(t, d, 2)...)
	for _, step := range []struct {
		run, first, second string // how long ago they finished
		answers            int64  // that are deleted
		recorded           bool
	}{
		{"1 h", "25 h", "1 h", 1, false},
		{"25 h", "25 h", "1 h", 1, false}, // by a clock that was ahead
		{"1 h", "25 h", "25 h", 2, false},
		{"25 h", "25 h", "25 h", 2, true},
		{"25 h", "25 h", "25 h", 0, true},
	} {
		for i, finished := range []string{step.first, step.second} {
			s.exec(t, `UPDATE job_results SET answer = '{}', finished_at = now() - $3::interval WHERE run_id = $1 AND ordinal = $2`, run, i+1, finished)
		}
		s.exec(t, `UPDATE measurement_runs SET started_at = now() - interval '26 h', finished_at = now() - $2::interval WHERE id = $1`, run, step.run)
		if n, err := jobs.Purge(t.Context(), s.pool, 24*time.Hour, nil); n != step.answers || err != nil {
			t.Errorf("%+v: %d answers were deleted, %v", step, n, err)
		}
		if recorded := s.count(t, `SELECT count(*) FROM measurement_runs WHERE answers_deleted`) == 1; recorded != step.recorded {
			t.Errorf("%+v: recorded: %t", step, recorded)
		}
	}
}

// TestPurgeManyRuns: a purge reads all runs, and goes on when one is locked.
func TestPurgeManyRuns(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	const runs = 510 // more than a step
	s.exec(t, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, jobs_completed, started_at, finished_at)
  SELECT md5('')::uuid, md5(n::text)::uuid, md5('')::uuid, 'completed', 'grounded', 'AIVM-1.0', '{m1}', '{q1}', 1, 'it-IT', 'IT', 'it', 1, 1,
    now() - interval '26 h', now() - interval '25 h'
  FROM generate_series(1, $1::integer) n`, runs)
	s.exec(t, `
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
  SELECT account_id, id, 1, 1, true, started_at, finished_at, '{}' FROM measurement_runs`)
	session := begin(t, s.pool, `SELECT FROM job_results WHERE account_id = md5('')::uuid AND run_id = md5('7')::uuid FOR UPDATE`)
	impatient, err := store.OpenHot(t.Context(), s.url+"&lock_timeout=100ms", 1)
	must(t, err)
	defer impatient.Close()
	if n, err := jobs.Purge(t.Context(), impatient, 24*time.Hour, nil); n != runs-1 || !store.IsLockTimeout(err) {
		t.Errorf("%d answers were deleted beside a locked one, %v", n, err)
	}
	must(t, session.Rollback(t.Context()))
	damaged := store.ID(md5.Sum([]byte("9")))
	s.exec(t, `UPDATE job_results SET answer = '{}'`)
	s.exec(t, `UPDATE measurement_runs SET answers_deleted = false`)
	n, err := jobs.Purge(t.Context(), s.pool, 24*time.Hour, func(_ context.Context, _ store.Tx, _, run store.ID, _ []int32) error {
		if run == damaged {
			return errors.New("damaged")
		}
		return nil
	})
	if n != runs-1 || fmt.Sprint(err) != damaged.Text("run")+": damaged" {
		t.Errorf("%d answers were deleted beside a damaged run, %v", n, err)
	}
	if n, err := jobs.Purge(t.Context(), s.pool, 24*time.Hour, nil); n != 1 || err != nil {
		t.Errorf("%d answers were deleted at last, %v", n, err)
	}
}

package jobs

import (
	"errors"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

// wantPurged checks how many answers a purge deletes of those that are older than a day.
func (s *site) wantPurged(want int64, what ...any) {
	s.t.Helper()
	n, err := Purge(s.t.Context(), s.pool, MinAnswersKept, nil)
	must(s.t, err)
	equal(s.t, want, n, append([]any{"answers deleted: "}, what...)...)
}

// TestPurgeKeepsCompletedJobs: old answers are deleted and their jobs stay completed; attempts are kept until an hour
// after their run's end.
func TestPurgeKeepsCompletedJobs(t *testing.T) {
	t.Parallel()
	s := ownSite(t, storetest.URL(t))
	const jobs = purgeStep + 100
	old, fresh := s.finish(jobs, "61 min"), s.finish(1, "0")
	s.exec(`UPDATE job_results SET finished_at = now() - interval '25 h' WHERE run_id = $1`, old)
	// A step of the purge ends between the attempts of a job.
	s.exec(`INSERT INTO job_attempts SELECT account_id, id, ordinal, attempt, 'retry'
		FROM measurement_runs, generate_series(1, 500) ordinal, generate_series(10, 16) attempt
		WHERE ordinal <= total_jobs`)
	s.exec(`INSERT INTO provider_minutes (provider_code, minute, claimed)
		SELECT 'p1', date_trunc('minute', now() - age, 'UTC'), 1 FROM unnest('{0 h,23 h,25 h}'::interval[]) age`)
	ahead := storetest.WithClockAhead(t, s.pool, 48*time.Hour)
	n, err := Purge(t.Context(), ahead, MinAnswersKept, nil)
	if _, ok := errors.AsType[*store.ClockError](err); !ok || n != 0 {
		t.Errorf("with a clock two days ahead: %d answers were deleted, %v", n, err)
	}
	n, err = Purge(t.Context(), s.pool, 0, nil)
	must(t, err)
	equal(t, int64(0), n, "answers deleted without a limit")
	equal(t, 7, s.count(`SELECT count(*) FROM job_attempts WHERE run_id = $1`, fresh), "attempts of the fresh run")
	equal(t, 7, s.rows("job_attempts"), "attempts")
	equal(t, 2, s.rows("provider_minutes"), "minutes with claims")
	s.wantPurged(jobs)
	equal(t, jobs, s.count(`SELECT count(*) FROM job_results WHERE answer IS NULL AND error_code IS NULL AND NOT canceled
		AND run_id = $1`, old), "completed jobs without an answer")
	if _, err := Purge(t.Context(), s.pool, time.Hour, nil); err == nil {
		t.Error("answers may be kept for an hour only")
	}
	s.check()
}

// finish inserts a completed run that was started 26 hours ago and ended so long ago, with the results of its jobs.
func (s *site) finish(jobs int, ended string) (run store.ID) {
	s.t.Helper()
	run = s.orderOf(s.account(), "m1", jobs, 1)
	s.exec(`DELETE FROM job_arrivals`)
	s.exec(`UPDATE measurement_runs SET status = 'completed', jobs_completed = total_jobs,
		started_at = now() - interval '26 h', finished_at = now() - $2::interval WHERE id = $1`, run, ended)
	s.exec(`
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
SELECT account_id, id, o, 1, true, started_at, finished_at, '{}'
FROM measurement_runs, generate_series(1, $2::integer) o WHERE id = $1`, run, jobs)
	return run
}

// TestPurgedRuns: a run is recorded as one whose answers are deleted when it is old itself and has none.
func TestPurgedRuns(t *testing.T) {
	s := newSite(t)
	s.finish(2, "1 h")
	for _, step := range []struct {
		run, first, second string // how long ago they finished
		answers            int64  // that are deleted
		recorded           int
	}{
		{"25 h", "25 h", "1 h", 1, 0}, // by a clock that was ahead
		{"1 h", "25 h", "25 h", 2, 0},
		{"25 h", "25 h", "25 h", 2, 1},
		{"25 h", "25 h", "25 h", 0, 1},
	} {
		s.exec(`UPDATE job_results SET answer = '{}',
			finished_at = now() - CASE WHEN ordinal = 1 THEN $1 ELSE $2 END::interval`, step.first, step.second)
		s.exec(`UPDATE measurement_runs SET finished_at = now() - $1::interval`, step.run)
		s.wantPurged(step.answers, step)
		equal(t, step.recorded, s.count(`SELECT count(*) FROM measurement_runs WHERE answers_deleted`), step, ": recorded")
	}
}

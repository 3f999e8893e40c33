package jobs

import (
	"errors"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

// TestPurgeKeepsCompletedJobs: old answers are deleted and their jobs stay completed. A run is recorded as one whose
// answers are deleted when it is old itself and has none. Attempts are kept until an hour after their run's end.
func TestPurgeKeepsCompletedJobs(t *testing.T) {
	t.Parallel()
	s := ownSite(t)
	const jobs = purgeStep + 100
	// finish inserts a completed run of 26 hours ago, which ended so long ago, with the results of its jobs.
	finish := func(jobs int, ended string) (run store.ID) {
		run = s.orderOf(s.account(), "m1", jobs, 1)
		s.exec(`UPDATE measurement_runs SET status = 'completed', jobs_completed = total_jobs,
			started_at = now() - interval '26 h', finished_at = now() - $2::interval WHERE id = $1`, run, ended)
		s.exec(`
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
SELECT account_id, id, o, 1, true, started_at, finished_at, '{}'
FROM measurement_runs, generate_series(1, $2::integer) o WHERE id = $1`, run, jobs)
		return run
	}
	old, fresh := finish(jobs, "61 min"), finish(1, "0")
	s.exec(`DELETE FROM job_arrivals`)
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
	if _, err := Purge(t.Context(), s.pool, time.Hour, nil); err == nil {
		t.Error("answers may be kept for an hour only")
	}
	// purge checks how many answers are deleted of those that are older than keep, and how many runs are recorded.
	purge := func(keep time.Duration, deleted int64, recorded int, what string) {
		t.Helper()
		n, err := Purge(t.Context(), s.pool, keep, nil)
		must(t, err)
		equal(t, deleted, n, "answers deleted: ", what)
		equal(t, recorded, s.count(`SELECT count(*) FROM measurement_runs WHERE answers_deleted`), "runs recorded: ", what)
	}
	s.exec(`UPDATE job_results SET finished_at = now() - interval '25 h' WHERE run_id = $1 AND ordinal > 1`, old)
	purge(0, 0, 0, "without a limit")
	equal(t, 7, s.count(`SELECT count(*) FROM job_attempts WHERE run_id = $1`, fresh), "attempts of the fresh run")
	equal(t, 7, s.rows("job_attempts"), "attempts")
	equal(t, 2, s.rows("provider_minutes"), "minutes with claims")
	purge(MinAnswersKept, jobs-1, 0, "all but one of a run")
	s.exec(`UPDATE measurement_runs SET finished_at = now() - interval '25 h' WHERE id = $1`, old)
	purge(MinAnswersKept, 0, 0, "of a run that ended before its last job, by a clock that was ahead")
	s.exec(`UPDATE job_results SET finished_at = now() - interval '25 h' WHERE run_id = $1`, old)
	s.exec(`UPDATE measurement_runs SET finished_at = now() WHERE id = $1`, old)
	purge(MinAnswersKept, 1, 0, "of a run that has just ended")
	s.exec(`UPDATE measurement_runs SET finished_at = now() - interval '25 h' WHERE id = $1`, old)
	purge(MinAnswersKept, 0, 1, "of an old run")
	equal(t, jobs, s.count(`SELECT count(*) FROM job_results WHERE answer IS NULL AND error_code IS NULL AND NOT canceled
		AND run_id = $1`, old), "completed jobs without an answer")
	s.check()
}

package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// MinAnswersKept is the shortest time for which answers are kept.
const MinAnswersKept = 24 * time.Hour

// Purge deletes the attempts of runs that have been final for an hour, the claims of past minutes and, if keep is not 0, the
// answers of jobs that finished longer ago than keep. It works in small steps, and returns how many answers it deleted. Several
// processes may purge at the same time. It deletes nothing and returns a *store.ClockError if the clocks of the process and the
// database disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool, keep time.Duration) (answers int64, err error) {
	if keep != 0 && keep < MinAnswersKept {
		return 0, fmt.Errorf("answers are kept for %s at least", MinAnswersKept)
	}
	before, err := store.PurgeBefore(ctx, pool, keep)
	if err != nil {
		return 0, err
	}
	if _, err := pool.Exec(ctx, purgeMinutes); err != nil {
		return 0, err
	}
	if err := purgeAttempts(ctx, pool); err != nil || keep == 0 {
		return 0, err
	}
	for {
		done, err := pool.Exec(ctx, purgeAnswersSQL, purgeStep, before)
		if err != nil {
			return answers, err
		}
		if answers += done.RowsAffected(); done.RowsAffected() < purgeStep {
			return answers, nil
		}
	}
}

// purgeAttempts reads all of job_attempts by its key, one step in each statement: it contains the attempts of open runs, and of
// those that became final since the hour before the last purge.
func purgeAttempts(ctx context.Context, pool *pgxpool.Pool) error {
	var account, run store.ID
	var ordinal int32
	for {
		var nextAccount, nextRun *store.ID
		var nextOrdinal *int32
		err := pool.QueryRow(ctx, purgeAttemptsSQL, account, run, ordinal, purgeStep).Scan(&nextAccount, &nextRun, &nextOrdinal)
		if err != nil || nextAccount == nil {
			return err
		}
		account, run, ordinal = *nextAccount, *nextRun, *nextOrdinal
	}
}

const purgeStep = 2000

const (
	purgeMinutes = `DELETE FROM provider_minutes WHERE minute < now() - interval '1 day'`

	// A step is the rows after a key; if it is full, its last row is the key of the next.
	purgeAttemptsSQL = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, attempt FROM job_attempts WHERE (account_id, run_id, ordinal) > ($1::uuid, $2::uuid, $3::integer)
  ORDER BY account_id, run_id, ordinal LIMIT $4::integer
), last AS (
  SELECT account_id, run_id, ordinal FROM step ORDER BY account_id DESC, run_id DESC, ordinal DESC LIMIT 1
), gone AS (
  DELETE FROM job_attempts a USING step s JOIN measurement_runs r ON r.account_id = s.account_id AND r.id = s.run_id
  WHERE (a.account_id, a.run_id, a.ordinal, a.attempt) = (s.account_id, s.run_id, s.ordinal, s.attempt)
    AND r.finished_at < now() - interval '1 hour'
)
SELECT last.account_id, last.run_id, last.ordinal FROM (SELECT) one LEFT JOIN last ON (SELECT count(*) FROM step) = $4`

	purgeAnswersSQL = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal FROM job_results WHERE answer IS NOT NULL AND finished_at < $2::timestamptz
  ORDER BY finished_at LIMIT $1::integer FOR UPDATE SKIP LOCKED
)
UPDATE job_results e SET answer = NULL FROM step s WHERE (e.account_id, e.run_id, e.ordinal) = (s.account_id, s.run_id, s.ordinal)`
)

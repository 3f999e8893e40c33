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

// Purge removes what is of no more use: the attempts of runs that have been final for an hour, the claims of past minutes and, if
// keep is not 0, the answers of jobs that were finished longer ago than that. It works in small steps, and returns how many
// answers it deleted. Several processes may purge at the same time. It deletes nothing and returns a *store.ClockError if the
// clocks of the process and the database disagree.
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
	if _, err := purge(ctx, pool, attemptKeys, purgeAttempts); err != nil || keep == 0 {
		return 0, err
	}
	return purge(ctx, pool, resultKeys, purgeAnswers, before)
}

// purge walks through a table by its key, one step in each statement, and returns how many rows it changed.
func purge(ctx context.Context, pool *pgxpool.Pool, keys, sql string, args ...any) (changed int64, err error) {
	var account, run store.ID
	var ordinal int32
	for {
		var n int64
		var nextAccount, nextRun *store.ID
		var nextOrdinal *int32
		err := pool.QueryRow(ctx, fmt.Sprintf(sql, keys), append([]any{account, run, ordinal, purgeStep}, args...)...).Scan(&n, &nextAccount, &nextRun, &nextOrdinal)
		if err != nil {
			return changed, err
		}
		changed += n
		if nextAccount == nil {
			return changed, nil
		}
		account, run, ordinal = *nextAccount, *nextRun, *nextOrdinal
	}
}

const purgeStep = 2000

const (
	purgeMinutes = `DELETE FROM provider_minutes WHERE minute < now() - interval '1 day'`

	// A step is the rows behind a key; its last row is where the next begins, if it is full.
	attemptKeys = `
step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, attempt FROM job_attempts WHERE (account_id, run_id, ordinal) > ($1::uuid, $2::uuid, $3::integer)
  ORDER BY account_id, run_id, ordinal LIMIT $4::integer
), last AS (
  SELECT account_id, run_id, ordinal FROM step ORDER BY account_id DESC, run_id DESC, ordinal DESC LIMIT 1
)`
	resultKeys = `
step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, finished_at, answer IS NOT NULL AS answered FROM job_results
  WHERE (account_id, run_id, ordinal) > ($1::uuid, $2::uuid, $3::integer) ORDER BY account_id, run_id, ordinal LIMIT $4::integer
), last AS (
  SELECT account_id, run_id, ordinal FROM step ORDER BY account_id DESC, run_id DESC, ordinal DESC LIMIT 1
)`

	purgeAttempts = `
WITH %s, gone AS (
  DELETE FROM job_attempts a USING step s JOIN measurement_runs r ON r.account_id = s.account_id AND r.id = s.run_id
  WHERE (a.account_id, a.run_id, a.ordinal, a.attempt) = (s.account_id, s.run_id, s.ordinal, s.attempt)
    AND r.finished_at < now() - interval '1 hour'
  RETURNING 1
)
SELECT (SELECT count(*) FROM gone), last.account_id, last.run_id, last.ordinal
FROM (SELECT) one LEFT JOIN last ON (SELECT count(*) FROM step) = $4`

	purgeAnswers = `
WITH %s, emptied AS (
  UPDATE job_results e SET answer = NULL FROM step s
  WHERE s.answered AND s.finished_at < $5
    AND (e.account_id, e.run_id, e.ordinal) = (s.account_id, s.run_id, s.ordinal)
  RETURNING 1
)
SELECT (SELECT count(*) FROM emptied), last.account_id, last.run_id, last.ordinal
FROM (SELECT) one LEFT JOIN last ON (SELECT count(*) FROM step) = $4`
)

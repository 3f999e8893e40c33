package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// DeletedAnswers is called in the transaction that deletes the answers of jobs of a run. The transaction has locked the
// run FOR UPDATE.
type DeletedAnswers func(ctx context.Context, tx store.Tx, account, run store.ID, ordinals []int32) error

// MinAnswersKept is the shortest time for which answers are kept.
const MinAnswersKept = 24 * time.Hour

// Purge deletes the attempts of runs that have been final for an hour, the claims of past minutes and, if keep is not
// 0, the answers of jobs that finished longer ago than keep. It works in small steps, and returns how many answers it
// deleted. Several processes may purge at the same time. It deletes nothing and returns a *store.ClockError if the
// clocks of the process and the database disagree. It calls deleted, unless that is nil, in each transaction that
// deletes answers.
func Purge(ctx context.Context, pool *pgxpool.Pool, keep time.Duration, deleted DeletedAnswers) (answers int64, err error) {
	if keep != 0 && keep < MinAnswersKept {
		return 0, fmt.Errorf("answers must be kept for at least %s", MinAnswersKept)
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
	return purgeAnswers(ctx, pool, before, deleted)
}

// purgeAttempts reads all of job_attempts by its key, one step in each statement. The table is small: it has only the
// attempts of open runs, and of runs that became final since the hour before the last purge.
func purgeAttempts(ctx context.Context, pool *pgxpool.Pool) error {
	var account, run store.ID
	var ordinal int32
	var attempt int16
	for {
		var nextAccount, nextRun *store.ID
		var nextOrdinal *int32
		var nextAttempt *int16
		err := pool.QueryRow(ctx, purgeAttemptsSQL, citusPurgeAttempts, account, run, ordinal, attempt, purgeStep).
			Scan(&nextAccount, &nextRun, &nextOrdinal, &nextAttempt)
		// The last step was not full.
		if err != nil || nextAccount == nil {
			return err
		}
		account, run, ordinal, attempt = *nextAccount, *nextRun, *nextOrdinal, *nextAttempt
	}
}

// purgeStep is the maximum number of rows that one transaction deletes.
const purgeStep = 2000

// Unqueue deletes the queue entries and leases that final runs still have; canceled runs keep them for a while. All
// claims wait for the lock that it holds, so it deletes nothing else.
func Unqueue(ctx context.Context, pool *pgxpool.Pool, account store.ID, runs []store.ID) error {
	var pending bool
	if err := pool.QueryRow(ctx, hasPending, account, runs).Scan(&pending); err != nil || !pending {
		return err
	}
	return store.Step(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockClaims); err != nil {
			return err
		}
		var b pgx.Batch
		for _, table := range []string{"job_arrivals", "job_queue", "job_leases", "job_holds"} {
			b.Queue(`DELETE FROM `+table+` WHERE account_id = $1 AND run_id = ANY ($2)`, account, runs)
		}
		return tx.SendBatch(ctx, &b).Close()
	})
}

// eraseTurns deletes the turns of an account that has no more runs.
func eraseTurns(ctx context.Context, pool *pgxpool.Pool, _ string, account store.ID) (turns int64, err error) {
	err = store.Step(ctx, pool, func(tx pgx.Tx) error {
		// Turns are written only under this lock.
		if _, err := tx.Exec(ctx, lockClaims); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, deleteTurns, account)
		turns = tag.RowsAffected()
		return err
	})
	return turns, err
}

const (
	// The limits need only the rows of the current minute.
	purgeMinutes = `DELETE FROM provider_minutes WHERE minute < now() - interval '1 day'`

	// A step is the rows after a key; if it is full, its last row is the key of the next.
	purgeAttemptsSQL = `
WITH step AS MATERIALIZED (
  SELECT account_id, run_id, ordinal, attempt, ctid AS tid` + stepOfAttempts + `DELETE FROM job_attempts a USING step k
  CROSS JOIN LATERAL (SELECT finished_at FROM measurement_runs r WHERE ` + isRun + `) r
  WHERE a.ctid = k.tid AND r.finished_at < now() - interval '1 hour'` + endOfStep

	stepOfAttempts = ` FROM job_attempts
  WHERE (account_id, run_id, ordinal, attempt) > ($1::uuid, $2::uuid, $3::integer, $4::smallint)
  ORDER BY account_id, run_id, ordinal, attempt LIMIT $5::integer
), last AS (
  SELECT account_id, run_id, ordinal, attempt FROM step ORDER BY account_id DESC, run_id DESC, ordinal DESC, attempt DESC LIMIT 1
), gone AS (
  `
	endOfStep = `
)
SELECT last.* FROM (SELECT) one LEFT JOIN last ON (SELECT count(*) FROM step) = $5`

	// hasPending is read without a lock, so that most purges need not take the lock of claims.
	hasPending = `
SELECT EXISTS (SELECT FROM job_arrivals WHERE account_id = $1 AND run_id = ANY ($2))
  OR EXISTS (SELECT FROM job_queue WHERE account_id = $1 AND run_id = ANY ($2))
  OR EXISTS (SELECT FROM job_leases WHERE account_id = $1 AND run_id = ANY ($2))`

	deleteTurns = `DELETE FROM job_turns WHERE account_id = $1`
)

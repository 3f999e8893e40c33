package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Pending is a range of jobs of one run and model that are not final, in one state.
type Pending struct {
	State        string // queued (never claimed), running, waiting (for another try) or ready (for one)
	Provider     string
	Account, Run store.ID
	ModelID      string
	First, Last  int32
	RunCreatedAt time.Time
	Attempts     int        // claims
	Tries        int        // claims that ended in a retry or a lost lease
	Until        *time.Time // the end of the lease or of the wait
	Worker       *store.ID  // of the latest claim
}

// A PendingFilter selects among the jobs that are not final. Empty members select all.
type PendingFilter struct {
	State    string
	Provider string
	Run      *store.ID
}

// ListPending returns the jobs that are not final, those of the oldest runs first. It reads all waiting jobs,
// so it is for operators only. It omits runs that no dispatcher has queued yet.
func ListPending(ctx context.Context, pool *pgxpool.Pool, f PendingFilter, limit int) (pending []Pending, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, listPending, f.State, f.Provider, f.Run, limit)
		if err != nil {
			return err
		}
		pending, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Pending])
		return err
	})
	return pending, err
}

const listPending = `
SELECT p.state, p.provider_code, p.account_id, p.run_id,
  r.model_ids[(p.first - 1) / (cardinality(r.question_ids) * r.repetitions) + 1], p.first, p.last, p.run_created_at, p.attempt, p.tries, p.until,
  p.worker_id
FROM (
  SELECT 'queued' AS state, provider_code, account_id, run_id, next_ordinal AS first, last_ordinal AS last, run_created_at,
    0 AS attempt, 0 AS tries, NULL::timestamptz AS until, NULL::uuid AS worker_id
  FROM job_queue
  UNION ALL
  SELECT CASE WHEN state = 'held' THEN 'running' ELSE state END, provider_code, account_id, run_id, ordinal, last_ordinal, run_created_at,
    attempt, tries, CASE WHEN state <> 'ready' THEN until END, worker_id
  FROM job_leases) p
JOIN measurement_runs r ON r.account_id = p.account_id AND r.id = p.run_id
WHERE r.status <> 'canceled' AND ($1 = '' OR p.state = $1) AND ($2 = '' OR p.provider_code = $2) AND ($3::uuid IS NULL OR p.run_id = $3)
ORDER BY p.run_created_at, p.account_id, p.run_id, p.first LIMIT $4`

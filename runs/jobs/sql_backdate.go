package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Backdate moves the results of an account's runs, which were moved into the past (runs.Backdate), to times between the
// start and the end of their run. Only sample data uses it.
func Backdate(ctx context.Context, pool *pgxpool.Pool, account store.ID) error {
	if _, err := pool.Exec(ctx, backdateResults, account); err != nil {
		return fmt.Errorf("backdate results: %w", err)
	}
	return nil
}

// backdateResults assumes that a run that is not final has been in work for half of its age.
const backdateResults = `
UPDATE job_results e SET started_at = r.started_at + (e.ordinal - 1) * r.step, finished_at = r.started_at + e.ordinal * r.step
FROM (
  SELECT account_id, id, started_at, (COALESCE(finished_at, started_at + (now() - started_at) / 2) - started_at) / total_jobs AS step
  FROM measurement_runs WHERE account_id = $1 AND started_at IS NOT NULL) r
WHERE e.account_id = r.account_id AND e.run_id = r.id`

package runs

// backdateRuns changes the runs and the rows that repeat the time of creation. It deletes the account's months, which
// recountMonths then computes again.
const backdateRuns = `
WITH past AS (
  SELECT * FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::int[], $8::int[], $9::int[])
    AS p (id, status, created_at, started_at, finished_at, completed, failed, canceled)
), run AS (
  UPDATE measurement_runs r SET status = p.status, created_at = p.created_at, started_at = p.started_at, finished_at = p.finished_at,
    jobs_completed = p.completed, jobs_failed = p.failed, jobs_canceled = p.canceled
  FROM past p WHERE r.account_id = $1 AND r.id = p.id AND r.created_at <> p.created_at
  RETURNING p.id, p.created_at
), model AS (
  UPDATE measurement_run_models m SET created_at = r.created_at FROM run r WHERE m.account_id = $1 AND m.run_id = r.id
), usage AS (
  UPDATE usage_records u SET created_at = r.created_at FROM run r WHERE u.account_id = $1 AND u.run_id = r.id
)
DELETE FROM account_months WHERE account_id = $1`

// recountMonths counts final jobs of final runs only, as addFinished does.
const recountMonths = `
INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed, jobs_canceled)
SELECT account_id, date_trunc('month', created_at, 'UTC'), count(*), sum(total_jobs),
  COALESCE(sum(jobs_completed) FILTER (WHERE finished_at IS NOT NULL), 0),
  COALESCE(sum(jobs_failed) FILTER (WHERE finished_at IS NOT NULL), 0), sum(jobs_canceled)
FROM measurement_runs WHERE account_id = $1 GROUP BY 1, 2`

const selectCreated = `SELECT id, created_at FROM measurement_runs WHERE account_id = $1 AND id = ANY ($2)`

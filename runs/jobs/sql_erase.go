package jobs

const (
	hasPending = `
SELECT EXISTS (SELECT FROM job_arrivals WHERE account_id = $1 AND run_id = ANY ($2))
  OR EXISTS (SELECT FROM job_queue WHERE account_id = $1 AND run_id = ANY ($2))
  OR EXISTS (SELECT FROM job_leases WHERE account_id = $1 AND run_id = ANY ($2))`

	deleteArrivalsOfRuns = `DELETE FROM job_arrivals WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteQueueOfRuns    = `DELETE FROM job_queue WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteLeasesOfRuns   = `DELETE FROM job_leases WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteResultsOfRuns  = `DELETE FROM job_results WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteAttemptsOfRuns = `DELETE FROM job_attempts WHERE account_id = $1 AND run_id = ANY ($2)`

	deleteTurns = `
DELETE FROM job_turns t WHERE t.account_id = $1
  AND NOT EXISTS (SELECT FROM job_queue q WHERE q.account_id = t.account_id)
  AND NOT EXISTS (SELECT FROM job_leases l WHERE l.account_id = t.account_id)`
)

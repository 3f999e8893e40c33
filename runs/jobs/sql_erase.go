package jobs

const (
	hasPending = `
SELECT EXISTS (SELECT FROM unnest($2::uuid[]) AS k (id) JOIN job_arrivals j ON j.account_id = $1 AND j.run_id = k.id)
  OR EXISTS (SELECT FROM unnest($2::uuid[]) AS k (id) JOIN job_queue j ON j.account_id = $1 AND j.run_id = k.id)
  OR EXISTS (SELECT FROM unnest($2::uuid[]) AS k (id) JOIN job_leases j ON j.account_id = $1 AND j.run_id = k.id)`

	deleteArrivalsOfRuns = `DELETE FROM job_arrivals j USING unnest($2::uuid[]) AS k (id) WHERE j.account_id = $1 AND j.run_id = k.id`
	deleteQueueOfRuns    = `DELETE FROM job_queue j USING unnest($2::uuid[]) AS k (id) WHERE j.account_id = $1 AND j.run_id = k.id`
	deleteLeasesOfRuns   = `DELETE FROM job_leases j USING unnest($2::uuid[]) AS k (id) WHERE j.account_id = $1 AND j.run_id = k.id`
	deleteResultsOfRuns  = `DELETE FROM job_results j USING unnest($2::uuid[]) AS k (id) WHERE j.account_id = $1 AND j.run_id = k.id`
	deleteAttemptsOfRuns = `DELETE FROM job_attempts j USING unnest($2::uuid[]) AS k (id) WHERE j.account_id = $1 AND j.run_id = k.id`

	deleteTurns = `
DELETE FROM job_turns t WHERE t.account_id = $1
  AND NOT EXISTS (SELECT FROM job_queue q WHERE q.account_id = t.account_id)
  AND NOT EXISTS (SELECT FROM job_leases l WHERE l.account_id = t.account_id)`
)

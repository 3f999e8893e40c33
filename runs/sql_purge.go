package runs

const (
	listAccountIDs = `SELECT id FROM accounts WHERE id > $1 ORDER BY id LIMIT 100`

	// readPurgeable reads runs of an account after a position, in the order of creation, which is an index's, and
	// whether each may be purged. A run finishes after its creation, so no run that was created after $4 is read. NULL
	// means no bound.
	readPurgeable = `
SELECT id, created_at, total_jobs, finished_at IS NOT NULL AND ($4::timestamptz IS NULL OR finished_at < $4) AS purgeable
FROM measurement_runs
WHERE account_id = $1 AND (created_at, id) > ($2, $3) AND created_at < COALESCE(LEAST($4, $5::timestamptz), 'infinity')
ORDER BY account_id, created_at, id LIMIT $6`

	// lockPurge makes concurrent purges take turns.
	lockPurge = `SELECT pg_advisory_xact_lock(hashtext('aiv purge'))`

	// lockPurgeable leaves out runs that another purge has deleted since they were read.
	lockPurgeable = `
SELECT id, created_at, total_jobs FROM measurement_runs WHERE account_id = $1 AND id = ANY ($2) ORDER BY account_id, id FOR UPDATE`

	deleteModels = `
DELETE FROM measurement_run_models m USING (
  SELECT account_id, unnest(model_ids) AS model_id, created_at, id FROM measurement_runs WHERE account_id = $1 AND id = ANY ($2)) r
WHERE (m.account_id, m.model_id, m.created_at, m.run_id) = (r.account_id, r.model_id, r.created_at, r.id)`

	deleteJobs  = `DELETE FROM measurement_jobs WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteUsage = `DELETE FROM usage_records WHERE account_id = $1 AND run_id = ANY ($2)`
	deleteRuns  = `DELETE FROM measurement_runs WHERE account_id = $1 AND id = ANY ($2)`

	// addPurged locks the months in the order in which other statements lock them.
	addPurged = `
INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered, runs_purged, jobs_purged)
SELECT $1::uuid, date_trunc('month', created_at, 'UTC'), 0, 0, count(*), sum(jobs)
FROM unnest($2::timestamptz[], $3::integer[]) AS p (created_at, jobs)
GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (account_id, month) DO UPDATE SET runs_purged = m.runs_purged + excluded.runs_purged, jobs_purged = m.jobs_purged + excluded.jobs_purged`

	// readOpen reads some of the open runs of an account.
	readOpen = `
SELECT id FROM measurement_runs WHERE account_id = $1 AND status = ANY ('{queued,running}') LIMIT 100`
)

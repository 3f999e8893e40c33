-- oldest-compatible: 0006

-- Earlier builds joined leases of two models of a run, whose jobs claims describe by the first: split them at the models' boundaries.
-- Dispatchers of those builds must not run any more, because they would join leases again.
-- Claims and settlements read leases and write them later in the transaction, so the lock waits for these transactions to end.
LOCK TABLE job_leases IN ACCESS EXCLUSIVE MODE;

INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
SELECT l.account_id, l.run_id, before + 1, LEAST(l.last_ordinal, before + r.total_jobs / cardinality(r.model_ids)), l.provider_code, l.run_created_at,
  l.state, l.attempt, l.tries, l.until, l.started_at, l.worker_id
FROM job_leases l
JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id
CROSS JOIN LATERAL generate_series(r.total_jobs / cardinality(r.model_ids), l.last_ordinal - 1, r.total_jobs / cardinality(r.model_ids)) AS before
WHERE before >= l.ordinal;

UPDATE job_leases l SET last_ordinal = ((l.ordinal - 1) / (r.total_jobs / cardinality(r.model_ids)) + 1) * (r.total_jobs / cardinality(r.model_ids))
FROM measurement_runs r
WHERE r.account_id = l.account_id AND r.id = l.run_id
  AND (l.ordinal - 1) / (r.total_jobs / cardinality(r.model_ids)) <> (l.last_ordinal - 1) / (r.total_jobs / cardinality(r.model_ids));

-- Claims no longer count the jobs of a run that workers have: they would wait for the row that settlements of the run change. The jobs
-- that workers gave back are counted instead. The number of running jobs follows from these, the final ones and job_queue.
ALTER TABLE measurement_runs RENAME COLUMN jobs_running TO jobs_returned;
ALTER TABLE measurement_runs RENAME CONSTRAINT measurement_runs_jobs_running_check TO measurement_runs_jobs_returned_check;

UPDATE measurement_runs SET jobs_returned = 0 WHERE status = 'running';

UPDATE measurement_runs r SET jobs_returned = l.jobs
FROM (
  SELECT account_id, run_id, sum(last_ordinal - ordinal + 1) AS jobs FROM job_leases WHERE state <> 'held' GROUP BY account_id, run_id) l
WHERE r.account_id = l.account_id AND r.id = l.run_id AND r.status = 'running';

-- A run is canceled when its row is locked: its jobs may have been claimed since the transaction began. Claims of jobs that no worker has
-- had lock rows of job_queue, not the run. A distributed database has a function of its own, in PL/pgSQL, which aiv migrate -distribute
-- replaces.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
      WHERE p.oid = 'cancel_run(uuid, uuid)'::regprocedure AND l.lanname = 'sql') THEN
    CREATE OR REPLACE FUNCTION cancel_run(account uuid, run uuid) RETURNS SETOF measurement_runs
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $function$
  SELECT FROM measurement_runs WHERE account_id = account AND id = run FOR NO KEY UPDATE;
  SELECT FROM job_queue WHERE account_id = account AND run_id >= run AND run_id <= run ORDER BY account_id, run_id, model_no FOR UPDATE;
  DELETE FROM job_queue q USING (
    SELECT ctid AS tid FROM job_queue WHERE account_id = account AND run_id >= run AND run_id <= run ORDER BY account_id, run_id, model_no) found
  WHERE q.ctid = found.tid;
  WITH canceled AS (
    UPDATE measurement_runs SET status = 'canceled', finished_at = clock_timestamp(), jobs_returned = 0,
      jobs_canceled = total_jobs - jobs_completed - jobs_failed
    WHERE account_id = account AND id = run AND status IN ('queued', 'running')
    RETURNING *
  ), arrival AS (
    INSERT INTO job_arrivals (account_id, run_id, canceled) SELECT account_id, id, true FROM canceled
  )
  SELECT * FROM canceled
$function$;
  END IF;
END $$;

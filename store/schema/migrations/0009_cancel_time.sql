-- oldest-compatible: 0006

-- A run is canceled when its row is locked: its jobs may have been claimed since the transaction began. A distributed database has
-- a function of its own, in PL/pgSQL, which aiv migrate -distribute replaces.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
      WHERE p.oid = 'cancel_run(uuid, uuid)'::regprocedure AND l.lanname = 'sql') THEN
    CREATE OR REPLACE FUNCTION cancel_run(account uuid, run uuid) RETURNS SETOF measurement_runs
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $function$
  WITH canceled AS (
    UPDATE measurement_runs SET status = 'canceled', finished_at = clock_timestamp(), jobs_running = 0,
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

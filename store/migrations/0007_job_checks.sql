-- The same five checks of a job as two: each is evaluated for each of up to 100,000 rows of a run.
ALTER TABLE measurement_jobs
  DROP CONSTRAINT measurement_jobs_model_no_check,
  DROP CONSTRAINT measurement_jobs_question_no_check,
  DROP CONSTRAINT measurement_jobs_repetition_check,
  DROP CONSTRAINT measurement_jobs_status_check,
  DROP CONSTRAINT measurement_jobs_check,
  ADD CONSTRAINT measurement_jobs_place_check CHECK (model_no >= 1 AND question_no >= 1 AND repetition >= 1),
  ADD CONSTRAINT measurement_jobs_status_check CHECK (
    CASE WHEN finished_at IS NULL THEN status IN ('queued', 'running') ELSE status IN ('completed', 'failed', 'canceled') END);

-- Jobs are added at the end of their run, and no update moves them.
ALTER INDEX measurement_jobs_pkey SET (fillfactor = 100);

-- As before, with a shorter way for the rows of one large run: a pass without grouping them.
CREATE OR REPLACE FUNCTION measurement_jobs_are_whole_runs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  large measurement_runs;
BEGIN
  SELECT r.* INTO large FROM (SELECT account_id, run_id FROM added LIMIT 1) j CROSS JOIN LATERAL (
    SELECT * FROM measurement_runs r WHERE (r.account_id, r.id) >= (j.account_id, j.run_id) ORDER BY r.account_id, r.id LIMIT 1) r
  WHERE r.total_jobs > 1000;
  IF FOUND AND (
    SELECT bool_and(run_id = large.id AND account_id = large.account_id) AND
      (count(*), max(model_no), max(question_no), max(repetition))
        = (large.total_jobs, cardinality(large.model_ids), cardinality(large.question_ids), large.repetitions)
    FROM added)
  THEN
    RETURN NULL;
  END IF;
  IF EXISTS (
    SELECT FROM (
      SELECT account_id, run_id, count(*) AS jobs, max(model_no) AS models, max(question_no) AS questions, max(repetition) AS repetitions
      FROM added GROUP BY account_id, run_id) j
    WHERE (
      SELECT (r.account_id, r.id, r.total_jobs, cardinality(r.model_ids), cardinality(r.question_ids), r.repetitions)
        = (j.account_id, j.run_id, j.jobs, j.models, j.questions, j.repetitions)
      FROM measurement_runs r
      WHERE (r.account_id, r.id) >= (j.account_id, j.run_id) ORDER BY r.account_id, r.id LIMIT 1) IS NOT TRUE)
  THEN
    RAISE integrity_constraint_violation USING MESSAGE = 'the jobs written are not exactly those of an existing run',
      TABLE = 'measurement_jobs', CONSTRAINT = 'measurement_jobs_are_whole_runs';
  END IF;
  RETURN NULL;
END $$;

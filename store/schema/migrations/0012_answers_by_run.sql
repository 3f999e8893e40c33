-- oldest-compatible: 0011

-- Old answers are found by their runs. An index of answers by age takes a fifteenth of the time to record a result.
ALTER TABLE measurement_runs ADD COLUMN answers_deleted boolean NOT NULL DEFAULT false;

CREATE INDEX measurement_runs_answers ON measurement_runs (started_at, account_id, id) WHERE NOT answers_deleted AND started_at IS NOT NULL;

DROP INDEX job_results_answered;

-- What was ordered: runs, their jobs, their usage, and what each idempotency key produced. One statement writes all four.

-- The jobs of each state are counted on the run by whoever moves them, so that reading a run never counts rows.
-- Queued are the rest of total_jobs.
CREATE TABLE measurement_runs (
  account_id          uuid NOT NULL REFERENCES accounts,
  id                  uuid NOT NULL,
  credential_id       uuid NOT NULL,
  status              text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'completed', 'partial', 'failed', 'canceled')),
  measurement_type    text NOT NULL,
  methodology_version text COLLATE "C" NOT NULL REFERENCES methodologies,
  model_ids           text[] NOT NULL,
  question_ids        text[] NOT NULL,
  repetitions         smallint NOT NULL CHECK (repetitions >= 1),
  locale              text NOT NULL,
  country             text NOT NULL,
  language            text NOT NULL,
  total_jobs          integer NOT NULL CHECK (total_jobs = cardinality(model_ids) * cardinality(question_ids) * repetitions AND total_jobs > 0),
  jobs_running        integer NOT NULL DEFAULT 0 CHECK (jobs_running >= 0),
  jobs_completed      integer NOT NULL DEFAULT 0 CHECK (jobs_completed >= 0),
  jobs_failed         integer NOT NULL DEFAULT 0 CHECK (jobs_failed >= 0),
  jobs_canceled       integer NOT NULL DEFAULT 0 CHECK (jobs_canceled >= 0),
  created_at          timestamptz NOT NULL DEFAULT now(),
  started_at          timestamptz,
  finished_at         timestamptz,
  PRIMARY KEY (account_id, id),
  FOREIGN KEY (account_id, credential_id) REFERENCES credentials (account_id, id),
  CHECK (jobs_running + jobs_completed + jobs_failed + jobs_canceled <= total_jobs),
  CHECK (status <> 'queued' OR started_at IS NULL),
  CHECK (status <> 'running' OR started_at IS NOT NULL),
  CHECK ((status IN ('completed', 'partial', 'failed', 'canceled')) = (finished_at IS NOT NULL))
);

-- The queue: what is still to be measured, oldest first.
CREATE INDEX measurement_runs_open ON measurement_runs (created_at) WHERE status IN ('queued', 'running');

-- A job names its model and its question by their places in the run's arrays (from 1): they can't differ from the run's,
-- the same job can't stand twice, and a narrow key makes 100,000 rows cheap to write.
CREATE TABLE measurement_jobs (
  account_id  uuid NOT NULL,
  run_id      uuid NOT NULL,
  model_no    smallint NOT NULL CHECK (model_no >= 1),
  question_no smallint NOT NULL CHECK (question_no >= 1),
  repetition  smallint NOT NULL CHECK (repetition >= 1),
  status      text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'completed', 'failed', 'canceled')),
  started_at  timestamptz,
  finished_at timestamptz,
  PRIMARY KEY (account_id, run_id, model_no, question_no, repetition),
  CHECK ((status IN ('completed', 'failed', 'canceled')) = (finished_at IS NOT NULL))
);

-- A run's jobs come all at once, each exactly once. A foreign key would ask for each of 100,000 rows whether their one
-- run exists and more than double the time; this asks once a statement, and asks more.
CREATE FUNCTION measurement_jobs_are_whole_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM (
      SELECT account_id, run_id, count(*) AS jobs, max(model_no) AS models, max(question_no) AS questions, max(repetition) AS repetitions
      FROM added GROUP BY account_id, run_id) j
    LEFT JOIN measurement_runs r ON r.account_id = j.account_id AND r.id = j.run_id
    WHERE (j.jobs, j.models, j.questions, j.repetitions)
      IS DISTINCT FROM (r.total_jobs, cardinality(r.model_ids), cardinality(r.question_ids), r.repetitions))
  THEN
    RAISE integrity_constraint_violation USING MESSAGE = 'the jobs written are not exactly those of an existing run',
      TABLE = 'measurement_jobs', CONSTRAINT = 'measurement_jobs_are_whole_runs';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER measurement_jobs_are_whole_runs AFTER INSERT ON measurement_jobs
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION measurement_jobs_are_whole_runs();

-- The jobs with their names, for people and for workers.
CREATE VIEW named_measurement_jobs AS
  SELECT j.account_id, j.run_id, r.model_ids[j.model_no] AS model_id, r.question_ids[j.question_no] AS question_id, j.repetition,
    j.status, r.created_at, j.started_at, j.finished_at
  FROM measurement_jobs j JOIN measurement_runs r ON r.account_id = j.account_id AND r.id = j.run_id;

-- What is charged: one record a run. Its foreign key also keeps the run, and so the run of the jobs, from being deleted.
CREATE TABLE usage_records (
  account_id          uuid NOT NULL,
  run_id              uuid NOT NULL,
  credential_id       uuid NOT NULL,
  jobs                integer NOT NULL CHECK (jobs > 0),
  measurement_type    text NOT NULL,
  methodology_version text COLLATE "C" NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, run_id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs (account_id, id)
);

CREATE INDEX usage_records_time ON usage_records USING brin (created_at);

-- What a key produced. A record exists from the moment that its run does; there is no state before that.
CREATE TABLE idempotency_records (
  account_id   uuid NOT NULL,
  method       text COLLATE "C" NOT NULL,
  route        text COLLATE "C" NOT NULL,
  key          text COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
  run_id       uuid NOT NULL,
  answer       bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, method, route, key),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs (account_id, id)
);

CREATE INDEX idempotency_records_time ON idempotency_records USING brin (created_at);

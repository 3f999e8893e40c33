-- What was ordered: runs, their jobs, their usage, and what each idempotency key produced. One statement writes all four,
-- for many runs at once.
--
-- What refers to a run, and what a run refers to, is checked once a statement (AFTER INSERT … FOR EACH STATEMENT) instead
-- of by foreign keys, which ask once a row and lock the row referred to: five of them took as long as all the rest of a
-- small run, that of the jobs longer than writing 100,000 of them. The checks refuse what foreign keys would refuse. In
-- the other direction, credentials and methodologies are never deleted, and a run is not while anything refers to it.
--
-- They look rows up in ways that leave the planner one plan only. A join may be planned as a hash of the whole table, and
-- an equality on a run's key through any index that begins with the account and has the id somewhere: each is as good as
-- another while the table is empty, and the plan stays in the session when it no longer is. A scalar subquery that seeks
-- the first key from the wanted one on, in the order of the primary key, can only be read through that.

-- The jobs of each state are counted on the run by whoever moves them, so that reading a run never counts rows.
-- Queued are the rest of total_jobs.
CREATE TABLE measurement_runs (
  account_id          uuid NOT NULL,
  id                  uuid NOT NULL,
  credential_id       uuid NOT NULL, -- of the account
  status              text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'completed', 'partial', 'failed', 'canceled')),
  measurement_type    text NOT NULL,
  methodology_version text COLLATE "C" NOT NULL, -- in methodologies
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
  CHECK (jobs_running + jobs_completed + jobs_failed + jobs_canceled <= total_jobs),
  CHECK (status <> 'queued' OR started_at IS NULL),
  CHECK (status <> 'running' OR started_at IS NOT NULL),
  CHECK ((status IN ('completed', 'partial', 'failed', 'canceled')) = (finished_at IS NOT NULL))
);

CREATE FUNCTION measurement_runs_belong() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM added r
    WHERE (SELECT true FROM credentials c WHERE c.account_id = r.account_id AND c.id = r.credential_id) IS NULL
      OR (SELECT true FROM methodologies m WHERE m.version = r.methodology_version) IS NULL)
  THEN
    RAISE foreign_key_violation USING MESSAGE = 'a run needs a credential of its account and a methodology',
      TABLE = 'measurement_runs', CONSTRAINT = 'measurement_runs_belong';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER measurement_runs_belong AFTER INSERT ON measurement_runs
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION measurement_runs_belong();

CREATE FUNCTION never_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('rows of %s are never deleted: runs refer to them', TG_TABLE_NAME), TABLE = TG_TABLE_NAME;
END $$;

CREATE TRIGGER credentials_never_deleted BEFORE DELETE OR TRUNCATE OR UPDATE OF id, account_id ON credentials
  FOR EACH STATEMENT EXECUTE FUNCTION never_deleted();
CREATE TRIGGER methodologies_never_deleted BEFORE DELETE OR TRUNCATE OR UPDATE OF version ON methodologies
  FOR EACH STATEMENT EXECUTE FUNCTION never_deleted();

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

-- A run's jobs come all at once, each exactly once: more than a foreign key could ask.
CREATE FUNCTION measurement_jobs_are_whole_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
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

CREATE TRIGGER measurement_jobs_are_whole_runs AFTER INSERT ON measurement_jobs
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION measurement_jobs_are_whole_runs();

-- The jobs with their names, for people and for workers.
CREATE VIEW named_measurement_jobs AS
  SELECT j.account_id, j.run_id, r.model_ids[j.model_no] AS model_id, r.question_ids[j.question_no] AS question_id, j.repetition,
    j.status, r.created_at, j.started_at, j.finished_at
  FROM measurement_jobs j JOIN measurement_runs r ON r.account_id = j.account_id AND r.id = j.run_id;

-- What is charged: one record a run.
CREATE TABLE usage_records (
  account_id          uuid NOT NULL,
  run_id              uuid NOT NULL,
  credential_id       uuid NOT NULL,
  jobs                integer NOT NULL CHECK (jobs > 0),
  measurement_type    text NOT NULL,
  methodology_version text COLLATE "C" NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, run_id)
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
  PRIMARY KEY (account_id, method, route, key)
);

CREATE INDEX idempotency_records_time ON idempotency_records USING brin (created_at);

CREATE FUNCTION belongs_to_a_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM added a
    WHERE (
      SELECT (r.account_id, r.id) = (a.account_id, a.run_id) FROM measurement_runs r
      WHERE (r.account_id, r.id) >= (a.account_id, a.run_id) ORDER BY r.account_id, r.id LIMIT 1) IS NOT TRUE)
  THEN
    RAISE foreign_key_violation USING MESSAGE = format('a row of %s refers to no run of its account', TG_TABLE_NAME),
      TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER usage_records_belong AFTER INSERT ON usage_records
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION belongs_to_a_run();
CREATE TRIGGER idempotency_records_belong AFTER INSERT ON idempotency_records
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION belongs_to_a_run();

CREATE FUNCTION measurement_runs_are_referred_to() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM gone g
    WHERE EXISTS (SELECT FROM measurement_jobs j WHERE j.account_id = g.account_id AND j.run_id = g.id)
      OR EXISTS (SELECT FROM usage_records u WHERE u.account_id = g.account_id AND u.run_id = g.id)
      OR EXISTS (SELECT FROM idempotency_records i WHERE i.account_id = g.account_id AND i.run_id = g.id))
  THEN
    RAISE foreign_key_violation USING MESSAGE = 'a run has jobs, usage or an idempotency key', TABLE = 'measurement_runs',
      CONSTRAINT = 'measurement_runs_are_referred_to';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER measurement_runs_are_referred_to AFTER DELETE ON measurement_runs
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION measurement_runs_are_referred_to();
CREATE TRIGGER measurement_runs_keep_their_key BEFORE UPDATE OF account_id, id OR TRUNCATE ON measurement_runs
  FOR EACH STATEMENT EXECUTE FUNCTION never_deleted();

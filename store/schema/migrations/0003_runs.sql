-- Runs: what was ordered, its jobs, its usage, and the result of each idempotency key.
--
-- One statement writes all of it, for many runs at once, and derives every other row from the run's row, so that they
-- cannot differ from it. There are no foreign keys here: one key's check costs about a tenth of a small run, and most of a
-- large one's time for jobs. `aiv verify` reports rows that disagree.

-- The jobs in each state are counted on the run by the statement that moves them, so that reading a run counts no rows. The
-- rest of total_jobs is queued.
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

-- Runs that are not final, oldest first.
CREATE INDEX measurement_runs_open ON measurement_runs (created_at) WHERE status IN ('queued', 'running');

-- The list and each of its filters: the account, the filter's column, the list's order.
CREATE INDEX measurement_runs_list ON measurement_runs (account_id, created_at, id);
CREATE INDEX measurement_runs_status ON measurement_runs (account_id, status, created_at, id);
CREATE INDEX measurement_runs_type ON measurement_runs (account_id, measurement_type, created_at, id);
CREATE INDEX measurement_runs_country ON measurement_runs (account_id, country, created_at, id);

-- One row per model of a run, for the list filter.
CREATE TABLE measurement_run_models (
  account_id uuid NOT NULL,
  model_id   text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  run_id     uuid NOT NULL,
  PRIMARY KEY (account_id, model_id, created_at, run_id)
);

-- The jobs that were ordered, one for each model, question and repetition of the run. ordinal is the job's position in that
-- order, from 1. Rows never change: what became of a job is in job_leases and job_results.
CREATE TABLE measurement_jobs (
  account_id uuid NOT NULL,
  run_id     uuid NOT NULL,
  ordinal    integer NOT NULL CHECK (ordinal >= 1),
  PRIMARY KEY (account_id, run_id, ordinal) WITH (fillfactor = 100)
);

-- What is charged: one record per run.
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

-- The runs and jobs that an account has ordered in each month (UTC) of their creation, and the jobs of its finished runs by
-- how they ended. Jobs of runs that are not final are counted on the run. Purged runs stay counted, and are counted again as
-- purged. Updates stay in their page (HOT).
CREATE TABLE account_months (
  account_id     uuid NOT NULL,
  month          timestamptz NOT NULL CHECK (date_trunc('month', month, 'UTC') = month),
  runs           bigint NOT NULL CHECK (runs >= 0),
  jobs_ordered   bigint NOT NULL CHECK (jobs_ordered >= 0),
  jobs_completed bigint NOT NULL DEFAULT 0 CHECK (jobs_completed >= 0),
  jobs_failed    bigint NOT NULL DEFAULT 0 CHECK (jobs_failed >= 0),
  jobs_canceled  bigint NOT NULL DEFAULT 0 CHECK (jobs_canceled >= 0),
  runs_purged    bigint NOT NULL DEFAULT 0 CHECK (runs_purged >= 0),
  jobs_purged    bigint NOT NULL DEFAULT 0 CHECK (jobs_purged >= 0),
  PRIMARY KEY (account_id, month)
) WITH (fillfactor = 50);

-- The result of an idempotency key. A record exists exactly when its run does.
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

-- Records are purged, oldest first.
CREATE INDEX idempotency_records_oldest ON idempotency_records (created_at);

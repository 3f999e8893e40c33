-- Jobs: workers and their tokens, what is handed out to them, and what they report.
--
-- A job has no row that changes. Its state follows from its run and from at most one row here: a row of job_results makes it
-- completed, failed or canceled; else a canceled run makes it canceled; else a held lease makes it running; else it is queued.
-- So jobs that wait cost nothing, and a run of any size is queued by one row per model.
--
-- Locks are taken in this order, each kind in the order of its keys: the advisory lock of claims, rows of measurement_runs,
-- provider_throttles, account_months. Rows of a run in job_leases, job_holds, job_results and job_attempts are written only under
-- the lock of the run's row, or under the advisory lock if the run is canceled; job_arrivals (deletes), job_queue, job_turns, provider_minutes only under the advisory lock.

-- Programs that ask providers' models. The token is in no table: token_hash is SHA-256 of it.
CREATE TABLE workers (
  id           uuid PRIMARY KEY,
  name         text NOT NULL CHECK (name <> ''),
  providers    text[] CHECK (array_position(providers, NULL) IS NULL), -- NULL: all
  token_hash   bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  created_at   timestamptz NOT NULL DEFAULT now(),
  revoked_at   timestamptz,
  last_seen_at timestamptz -- to the minute
);

-- Runs whose rows of job_queue must be written, or removed because the run was canceled. A row is deleted when that is done.
CREATE TABLE job_arrivals (
  account_id uuid NOT NULL,
  run_id     uuid NOT NULL,
  canceled   boolean NOT NULL DEFAULT false,
  PRIMARY KEY (account_id, run_id, canceled)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Jobs that no worker has had yet: one row for each run and model, deleted with its last job. Updates stay in their page (HOT).
CREATE TABLE job_queue (
  account_id     uuid NOT NULL,
  run_id         uuid NOT NULL,
  model_no       smallint NOT NULL,
  provider_code  text COLLATE "C" NOT NULL,
  run_created_at timestamptz NOT NULL,
  next_ordinal   integer NOT NULL,
  last_ordinal   integer NOT NULL CHECK (last_ordinal >= next_ordinal),
  PRIMARY KEY (account_id, run_id, model_no)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_queue_oldest ON job_queue (provider_code, account_id, run_created_at, run_id, model_no);

-- The accounts that have jobs to hand out at a provider. turn orders them in claims that list this provider, any_turn, the same
-- in all rows of an account, in claims of all providers. In each order the lowest comes first; a claim that serves an account
-- gives it the highest.
CREATE TABLE job_turns (
  account_id    uuid NOT NULL,
  provider_code text COLLATE "C" NOT NULL,
  turn          bigint NOT NULL,
  any_turn      bigint NOT NULL,
  PRIMARY KEY (account_id, provider_code)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_turns_next ON job_turns (provider_code, turn, account_id);
CREATE INDEX job_turns_next_of_any ON job_turns (provider_code, any_turn, account_id);

-- A transaction that hands out jobs takes one number; turns are numbered from it on.
CREATE SEQUENCE job_turn_numbers;

-- Jobs between their first claim and their end. A row covers the jobs ordinal to last_ordinal of one model, which were claimed
-- together and have not been told apart since.
--
-- held: a worker has them until the lease ends. waiting: they wait for another try, until that time. ready: they can be
-- claimed. attempt counts the claims; it is the fencing token. tries counts those that ended in a retry or a lost lease.
CREATE TABLE job_leases (
  account_id     uuid NOT NULL,
  run_id         uuid NOT NULL,
  ordinal        integer NOT NULL,
  last_ordinal   integer NOT NULL CHECK (last_ordinal >= ordinal),
  provider_code  text COLLATE "C" NOT NULL,
  run_created_at timestamptz NOT NULL,
  state          text NOT NULL CHECK (state IN ('held', 'waiting', 'ready')),
  attempt        smallint NOT NULL CHECK (attempt >= 1),
  tries          smallint NOT NULL,
  until          timestamptz NOT NULL,
  started_at     timestamptz NOT NULL, -- of the first claim
  worker_id      uuid NOT NULL,        -- of the latest claim
  PRIMARY KEY (account_id, run_id, ordinal)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX job_leases_held ON job_leases (provider_code, until) WHERE state = 'held';
CREATE INDEX job_leases_waiting ON job_leases (until) WHERE state = 'waiting';
CREATE INDEX job_leases_ready ON job_leases (provider_code, account_id, run_created_at, run_id, ordinal) WHERE state = 'ready';

-- How many jobs of a run and a provider are in held leases, on the coordinator of a Citus cluster, which commits a transaction before
-- the servers of its accounts do. Without Citus it has no rows: job_leases is counted.
CREATE TABLE job_holds (
  account_id    uuid NOT NULL,
  run_id        uuid NOT NULL,
  provider_code text COLLATE "C" NOT NULL,
  jobs          integer NOT NULL CHECK (jobs >= 0),
  PRIMARY KEY (provider_code, account_id, run_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_holds_run ON job_holds (account_id, run_id);

-- Final jobs. A job with an error code is failed. A canceled one has a row if it was ever claimed, so that its attempts are
-- kept when its lease is deleted. Any other is completed; its answer, the JSON that clients get, is NULL once it was deleted for
-- its age. settled: the attempt reported this end itself, so that its repetition is acknowledged again.
CREATE TABLE job_results (
  account_id    uuid NOT NULL,
  run_id        uuid NOT NULL,
  ordinal       integer NOT NULL,
  attempts      smallint NOT NULL,
  settled       boolean NOT NULL,
  canceled      boolean NOT NULL DEFAULT false,
  started_at    timestamptz NOT NULL,
  finished_at   timestamptz NOT NULL,
  answer        text,
  error_code    text,
  error_message text,
  PRIMARY KEY (account_id, run_id, ordinal),
  CHECK ((error_code IS NULL) = (error_message IS NULL)),
  CHECK (error_code IS NULL OR answer IS NULL),
  CHECK (NOT canceled OR (error_code IS NULL AND answer IS NULL))
);

CREATE INDEX job_results_failed ON job_results (account_id, run_id, ordinal) WHERE error_code IS NOT NULL;

-- Answers by age, to delete the oldest.
CREATE INDEX job_results_answered ON job_results (finished_at) WHERE answer IS NOT NULL;

-- Attempts that gave their job back, kept until an hour after their run is final, so that a repeated settlement is recognized.
CREATE TABLE job_attempts (
  account_id uuid NOT NULL,
  run_id     uuid NOT NULL,
  ordinal    integer NOT NULL,
  attempt    smallint NOT NULL,
  outcome    text NOT NULL CHECK (outcome IN ('retry', 'throttled', 'released')),
  PRIMARY KEY (account_id, run_id, ordinal, attempt)
);

-- Limits and pauses set by operators.
CREATE TABLE provider_settings (
  provider_code text COLLATE "C" PRIMARY KEY REFERENCES providers,
  per_minute    integer CHECK (per_minute >= 0), -- NULL: any number
  in_flight     integer CHECK (in_flight >= 0),  -- NULL: any number
  paused_at     timestamptz,
  pause_note    text,
  CHECK ((paused_at IS NULL) = (pause_note IS NULL))
);

-- Pauses that workers asked for.
CREATE TABLE provider_throttles (
  provider_code text COLLATE "C" PRIMARY KEY,
  until         timestamptz NOT NULL
);

-- The claims of each provider in each UTC minute.
CREATE TABLE provider_minutes (
  provider_code text COLLATE "C" NOT NULL,
  minute        timestamptz NOT NULL,
  claimed       integer NOT NULL,
  PRIMARY KEY (provider_code, minute)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Cancels a run and returns it, or returns nothing if the run does not exist or is final. The serving role may call it
-- although it may not change runs.
CREATE FUNCTION cancel_run(account uuid, run uuid) RETURNS SETOF measurement_runs
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
  WITH canceled AS (
    UPDATE measurement_runs SET status = 'canceled', finished_at = now(), jobs_running = 0,
      jobs_canceled = total_jobs - jobs_completed - jobs_failed
    WHERE account_id = account AND id = run AND status IN ('queued', 'running')
    RETURNING *
  ), arrival AS (
    INSERT INTO job_arrivals (account_id, run_id, canceled) SELECT account_id, id, true FROM canceled
  )
  SELECT * FROM canceled
$$;

REVOKE EXECUTE ON FUNCTION cancel_run FROM PUBLIC;

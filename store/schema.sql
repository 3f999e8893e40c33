-- The schema as the migrations leave it, in one file, for readers: the tables of each package, the lowest package
-- first, then functions and triggers. It is written by hand; a test of package schema compares what it makes with what the
-- migrations make. Rows that migrations insert are not shown.

-- Secrets shared by all processes. The cursor secret authenticates cursors; knowing it gives access to no data.
CREATE TABLE shared_secrets (
  name       text PRIMARY KEY,
  secret     bytea NOT NULL CHECK (octet_length(secret) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Each change made by an operator. It never contains a secret.
CREATE TABLE audit_log (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now(),
  actor   text NOT NULL,
  action  text NOT NULL,
  subject text NOT NULL,
  detail  jsonb NOT NULL DEFAULT '{}'::jsonb
);

-- Identity: plans, accounts, credentials, workers.
--
-- Text that is compared or ordered is COLLATE "C", so that its order is the same in every database.
CREATE TABLE plans (
  code                  text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  features              text[] NOT NULL CHECK (array_position(features, NULL::text) IS NULL),
  rate_limit_per_minute integer CHECK (rate_limit_per_minute BETWEEN 1 AND 1000000), -- NULL: the service's default
  jobs_per_month        bigint CHECK (jobs_per_month >= 0), -- NULL: no quota
  max_unfinished_jobs   bigint CHECK (max_unfinished_jobs >= 0), -- NULL: the service's default
  created_at            timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE accounts (
  id             uuid PRIMARY KEY,
  name           text NOT NULL CHECK (name <> ''),
  plan_code      text COLLATE "C" NOT NULL REFERENCES plans(code),
  own_quota      boolean NOT NULL DEFAULT false, -- whether jobs_per_month replaces the plan's
  jobs_per_month bigint CHECK (jobs_per_month >= 0), -- NULL: no quota
  created_at     timestamptz NOT NULL DEFAULT now(),
  erased_at      timestamptz, -- when its erasure began; from then on it gets neither keys nor data
  CHECK (own_quota OR jobs_per_month IS NULL)
);

-- No table contains a raw key: key_hash is its SHA-256, key_prefix its public beginning.
CREATE TABLE credentials (
  id                    uuid PRIMARY KEY,
  account_id            uuid NOT NULL REFERENCES accounts(id),
  name                  text NOT NULL CHECK (name <> ''),
  key_prefix            text NOT NULL CHECK (key_prefix ~ '^aiv_live_[0-9A-Za-z]{8}$'),
  key_hash              bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  scopes                text[] NOT NULL,
  rate_limit_per_minute integer CHECK (rate_limit_per_minute BETWEEN 1 AND 1000000), -- NULL: the plan's
  rotated_from          uuid REFERENCES credentials(id),
  expires_at            timestamptz,
  disabled_at           timestamptz,
  revoked_at            timestamptz,
  created_at            timestamptz NOT NULL DEFAULT now(),
  UNIQUE (account_id, id)
);

-- Operators are warned of credentials that expire soon.
CREATE INDEX credentials_expiry ON credentials (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;

-- Finds the successor of a rotated credential.
CREATE INDEX credentials_successor ON credentials (rotated_from) WHERE rotated_from IS NOT NULL;

-- One row: the revision of all credentials. A process caches credentials under a revision and counts a request
-- only if the revision has not changed, so that a revocation, a plan or a limit applies to the next request.
--
-- The revision is a time in microseconds or later, so that a database restored to an earlier state does not reach the same
-- revision again. The triggers also notice changes made with psql or by replication (ENABLE ALWAYS). They fire only on
-- operators' changes. An inserted credential counts too: after a failover that lost it, the revision is lost as well.
CREATE TABLE identity_revision (
  singleton boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  revision  bigint NOT NULL
);

-- Programs that ask providers' models. No table contains the token: token_hash is its SHA-256.
CREATE TABLE workers (
  id           uuid PRIMARY KEY,
  name         text NOT NULL CHECK (name <> ''),
  providers    text[] CHECK (array_position(providers, NULL::text) IS NULL), -- NULL: all
  token_hash   bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  created_at   timestamptz NOT NULL DEFAULT now(),
  revoked_at   timestamptz,
  last_seen_at timestamptz -- to the minute
);

-- The requests admitted in each minute (UTC) of a credential.
--
-- granted is the number that the latest statement admitted; the statement reads it back, because RETURNING shows no old
-- values before PostgreSQL 18. rate_limit is the highest limit that was applied to the minute. No column that changes is
-- indexed and pages are half empty, so that updates stay in their page (HOT). Minutes older than a day are deleted.
CREATE TABLE api_rate_limit_buckets (
  account_id    uuid NOT NULL,
  credential_id uuid NOT NULL,
  window_start  timestamptz NOT NULL,
  used          integer NOT NULL CHECK (used >= 0),
  granted       integer NOT NULL,
  rate_limit    integer NOT NULL,
  PRIMARY KEY (account_id, credential_id, window_start),
  CHECK (granted >= 0 AND granted <= used)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX api_rate_limit_buckets_window ON api_rate_limit_buckets (window_start);

-- The result of an idempotency key. A record exists exactly when its run does.
CREATE TABLE idempotency_records (
  account_id   uuid NOT NULL,
  method       text COLLATE "C" NOT NULL,
  route        text COLLATE "C" NOT NULL,
  key          text COLLATE "C" NOT NULL CHECK (length(key) >= 1 AND length(key) <= 255),
  request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
  run_id       uuid NOT NULL,
  answer       bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, method, route, key)
);

-- Records are purged, oldest first.
CREATE INDEX idempotency_records_oldest ON idempotency_records (created_at);

-- Catalog: methodologies, providers and what each depends on, models, questions.
CREATE TABLE methodologies (
  version           text COLLATE "C" PRIMARY KEY CHECK (version ~ '^AIVM-[0-9]+\.[0-9]+$'),
  status            text NOT NULL CHECK (status IN ('active', 'retired')),
  measurement_types text[] NOT NULL CHECK (cardinality(measurement_types) > 0),
  max_repetitions   integer NOT NULL CHECK (max_repetitions BETWEEN 1 AND 32767),
  max_jobs          integer NOT NULL CHECK (max_jobs BETWEEN 1 AND 1000000),
  created_at        timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE providers (
  code       text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'),
  name       text NOT NULL CHECK (name <> ''),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- A dependency without a row is unmet: nothing is assumed.
CREATE TABLE provider_dependencies (
  provider_code text COLLATE "C" NOT NULL REFERENCES providers(code),
  dependency    text NOT NULL CHECK (dependency IN ('configuration', 'secret', 'contract', 'legal_approval')),
  met           boolean NOT NULL,
  note          text NOT NULL CHECK (note <> ''),
  changed_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider_code, dependency)
);

CREATE TABLE models (
  id                text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  name              text NOT NULL CHECK (name <> ''),
  provider_code     text COLLATE "C" NOT NULL REFERENCES providers(code),
  provider_model    text NOT NULL CHECK (provider_model <> ''),
  status            text NOT NULL CHECK (status IN ('active', 'deprecated', 'disabled')),
  measurement_types text[] NOT NULL CHECK (cardinality(measurement_types) > 0),
  countries         text[], -- NULL: all
  languages         text[], -- NULL: all
  grounded_search   boolean NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now()
);

-- The questions that all accounts share.
CREATE TABLE questions (
  id         text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  text       text NOT NULL CHECK (text <> ''),
  language   text NOT NULL,
  country    text NOT NULL,
  topic      text NOT NULL,
  tags       text[] NOT NULL,
  status     text NOT NULL CHECK (status IN ('active', 'archived')),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX questions_language ON questions (language, id);
CREATE INDEX questions_country ON questions (country, id);
CREATE INDEX questions_topic ON questions (topic, id);
CREATE INDEX questions_status ON questions (status, id);

-- One row per tag of a question, for the list filter. The transaction that writes a question writes its tags.
CREATE TABLE question_tags (
  tag         text COLLATE "C" NOT NULL,
  question_id text COLLATE "C" NOT NULL REFERENCES questions(id) ON DELETE CASCADE,
  PRIMARY KEY (tag, question_id)
);

CREATE INDEX question_tags_question ON question_tags (question_id);

-- The own questions of accounts. No two questions that an account can use have the same id. Text, language and country of a question
-- never change, because answers were given to them.
CREATE TABLE own_questions (
  account_id uuid NOT NULL REFERENCES accounts(id),
  id         text COLLATE "C" NOT NULL CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  text       text NOT NULL CHECK (text <> ''),
  language   text NOT NULL,
  country    text NOT NULL,
  topic      text NOT NULL,
  tags       text[] NOT NULL,
  status     text NOT NULL CHECK (status IN ('active', 'archived')),
  form_hash  bytea CHECK (octet_length(form_hash) = 32), -- of language, country and the text's normal form; NULL: not computed yet
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

CREATE INDEX own_questions_language ON own_questions (account_id, language, id);
CREATE INDEX own_questions_country ON own_questions (account_id, country, id);
CREATE INDEX own_questions_topic ON own_questions (account_id, topic, id);
CREATE INDEX own_questions_status ON own_questions (account_id, status, id);
CREATE INDEX own_questions_form ON own_questions (account_id, form_hash, id);

CREATE TABLE own_question_tags (
  account_id  uuid NOT NULL,
  tag         text COLLATE "C" NOT NULL,
  question_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (account_id, tag, question_id),
  FOREIGN KEY (account_id, question_id) REFERENCES own_questions(account_id, id) ON DELETE CASCADE
);

CREATE INDEX own_question_tags_question ON own_question_tags (account_id, question_id);

-- Transactions that add own questions of an account lock its row.
CREATE TABLE own_question_accounts (
  account_id uuid PRIMARY KEY REFERENCES accounts(id),
  additions  bigint NOT NULL DEFAULT 1 -- transactions that locked the row
);

-- One row: the revision of the tables above. Whatever changes them increments it in the same transaction.
CREATE TABLE catalog_revision (
  singleton boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  revision  bigint NOT NULL
);

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
  total_jobs          integer NOT NULL,
  jobs_returned       integer NOT NULL DEFAULT 0 CHECK (jobs_returned >= 0), -- by workers, to be claimed again
  jobs_completed      integer NOT NULL DEFAULT 0 CHECK (jobs_completed >= 0),
  jobs_failed         integer NOT NULL DEFAULT 0 CHECK (jobs_failed >= 0),
  jobs_canceled       integer NOT NULL DEFAULT 0 CHECK (jobs_canceled >= 0),
  created_at          timestamptz NOT NULL DEFAULT now(),
  started_at          timestamptz,
  finished_at         timestamptz,
  answers_deleted     boolean NOT NULL DEFAULT false, -- all, because of their age
  jobs_counted        integer NOT NULL DEFAULT 0 CHECK (jobs_counted >= 0),
  PRIMARY KEY (account_id, id),
  CHECK (total_jobs = (cardinality(model_ids) * cardinality(question_ids) * repetitions) AND total_jobs > 0),
  CHECK ((jobs_returned + jobs_completed + jobs_failed + jobs_canceled) <= total_jobs),
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

-- Runs that may have answers, by their start, to delete the oldest answers.
CREATE INDEX measurement_runs_answers ON measurement_runs (started_at, account_id, id) WHERE NOT answers_deleted AND started_at IS NOT NULL;

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

-- Jobs: what is handed out to workers, and what they report.
--
-- A job has no row that changes. Its state follows from its run and from at most one row here: a row of job_results makes it
-- completed, failed or canceled; else a canceled run makes it canceled; else a held lease makes it running; else it is queued.
-- So jobs that wait cost nothing, and a run of any size is queued by one row per model.
--
-- Locks are taken in this order, each kind in the order of its keys: the advisory lock of claims, rows of measurement_runs,
-- job_queue, provider_pauses, provider_throttles, account_months. Rows of a run in job_leases, job_holds, job_results and job_attempts are written under
-- the lock of the run's row. The advisory lock is enough to insert held leases of jobs that no worker has had, to make waiting leases
-- ready, and for a canceled run. job_arrivals (deletes), job_queue, job_turns and provider_minutes are written under the advisory lock;
-- a cancellation, which does not take it, deletes the run's rows of job_queue. A settlement that inserts into provider_pauses takes it, so
-- that no later claim misses the pause. Purges of old rows take none of these locks, but the purge of answers locks their run.

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
  last_ordinal   integer NOT NULL,
  PRIMARY KEY (account_id, run_id, model_no),
  CHECK (last_ordinal >= next_ordinal)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_queue_oldest ON job_queue (provider_code, account_id, run_created_at, run_id, model_no);

-- The accounts that have jobs to hand out at a provider. The lowest turn comes first; a claim that serves an account gives it the
-- highest turns at all providers that the claim accepts.
CREATE TABLE job_turns (
  account_id    uuid NOT NULL,
  provider_code text COLLATE "C" NOT NULL,
  turn          bigint NOT NULL,
  any_turn      bigint NOT NULL DEFAULT 0, -- only older binaries use it
  PRIMARY KEY (account_id, provider_code)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_turns_next ON job_turns (provider_code, turn, account_id);

-- Jobs between their first claim and their end. A row covers the jobs ordinal to last_ordinal of one model, which were claimed
-- together and have had the same state since.
--
-- held: a worker has them until the lease ends. waiting: they wait for another try, until that time. ready: they can be
-- claimed. attempt counts the claims; it is the fencing token. tries counts those that ended in a retry or a lost lease.
CREATE TABLE job_leases (
  account_id     uuid NOT NULL,
  run_id         uuid NOT NULL,
  ordinal        integer NOT NULL,
  last_ordinal   integer NOT NULL,
  provider_code  text COLLATE "C" NOT NULL,
  run_created_at timestamptz NOT NULL,
  state          text NOT NULL CHECK (state IN ('held', 'waiting', 'ready')),
  attempt        smallint NOT NULL CHECK (attempt >= 1),
  tries          smallint NOT NULL,
  until          timestamptz NOT NULL,
  started_at     timestamptz NOT NULL, -- of the first claim
  worker_id      uuid NOT NULL, -- of the latest claim
  PRIMARY KEY (account_id, run_id, ordinal),
  CHECK (last_ordinal >= ordinal)
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
-- kept when its lease is deleted. Any other is completed; its answer, in the form of package answers, is NULL after it is deleted because of
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
  CHECK (NOT canceled OR error_code IS NULL AND answer IS NULL)
);

-- LZ4 takes a fraction of the time of the default. A server that was built without it keeps the default.
DO $$ BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE job_results ALTER COLUMN answer SET COMPRESSION lz4;
  END IF;
END $$;

CREATE INDEX job_results_failed ON job_results (account_id, run_id, ordinal) WHERE error_code IS NOT NULL;

-- Attempts that gave their job back, kept until an hour after their run is final, so that a repeated settlement is recognized.
CREATE TABLE job_attempts (
  account_id uuid NOT NULL,
  run_id     uuid NOT NULL,
  ordinal    integer NOT NULL,
  attempt    smallint NOT NULL,
  outcome    text NOT NULL CHECK (outcome IN ('retry', 'throttled', 'released', 'unavailable')),
  PRIMARY KEY (account_id, run_id, ordinal, attempt)
);

-- Limits set by operators.
CREATE TABLE provider_settings (
  provider_code text COLLATE "C" PRIMARY KEY REFERENCES providers(code),
  per_minute    integer CHECK (per_minute >= 0), -- NULL: any number
  in_flight     integer CHECK (in_flight >= 0) -- NULL: any number
);

-- Pauses by operators, and by workers that reported the provider unavailable. Only an operator can end one.
CREATE TABLE provider_pauses (
  provider_code text COLLATE "C" PRIMARY KEY,
  paused_at     timestamptz NOT NULL DEFAULT now(),
  note          text NOT NULL,
  reason        text COLLATE "C" CHECK (reason IN ('secret', 'contract', 'configuration')), -- NULL: an operator paused it
  paused_by     text NOT NULL -- the actor in the audit log
);

-- Pauses for a time, which workers asked for because the provider limits requests.
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

-- A transaction that hands out jobs takes one number; turns are numbered from it on.
CREATE SEQUENCE job_turn_numbers;

-- subject_id is the run, alert, recommendation or endpoint that the event is about. A run becomes final once.
CREATE TABLE events (
  account_id uuid NOT NULL REFERENCES accounts(id),
  id         uuid NOT NULL,
  type       text COLLATE "C" NOT NULL,
  subject_id uuid NOT NULL,
  data       json NOT NULL CHECK (json_typeof(data) = 'object'),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

CREATE UNIQUE INDEX events_run ON events (account_id, subject_id) WHERE type IN ('run.completed', 'run.partial', 'run.failed', 'run.canceled');
CREATE INDEX events_list ON events (account_id, created_at, id);
CREATE INDEX events_list_type ON events (account_id, type, created_at, id);
CREATE INDEX events_time ON events (created_at);

-- What answers are searched for. number identifies the brand in facts, and is never given to another brand of the account.
CREATE TABLE brands (
  account_id uuid NOT NULL REFERENCES accounts(id),
  id         uuid NOT NULL,
  number     smallint NOT NULL CHECK (number BETWEEN 1 AND 1000),
  kind       text COLLATE "C" NOT NULL CHECK (kind IN ('own', 'competitor')),
  name       text COLLATE "C" NOT NULL CHECK (length(name) >= 1 AND length(name) <= 128),
  aliases    text[] NOT NULL CHECK (cardinality(aliases) <= 20),
  domains    text[] NOT NULL CHECK (cardinality(domains) <= 20),
  exclude    text[] NOT NULL CHECK (cardinality(exclude) <= 20),
  match_case boolean NOT NULL,
  status     text COLLATE "C" NOT NULL CHECK (status IN ('active', 'archived')),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  UNIQUE (account_id, number)
);

CREATE INDEX brands_list ON brands (account_id, created_at, id);
CREATE INDEX brands_status ON brands (account_id, status, created_at, id);
CREATE INDEX brands_kind ON brands (account_id, kind, created_at, id);

-- How often the active brands of an account have changed. pending_since is the first change whose recount has not ended.
CREATE TABLE brand_revisions (
  account_id    uuid PRIMARY KEY REFERENCES accounts(id),
  revision      bigint NOT NULL CHECK (revision >= 0),
  changed_at    timestamptz NOT NULL,
  pending_since timestamptz NOT NULL
);

CREATE INDEX brand_revisions_changed ON brand_revisions (changed_at);

-- Facts of answers (package visibility), in chunks: the facts of jobs of a run that were counted together at one brand revision, and
-- their sums. deleted: the answers were deleted because of their age, so they cannot be recounted. small: to be merged with others.
CREATE TABLE visibility_facts (
  account_id    uuid NOT NULL,
  run_id        uuid NOT NULL,
  first_ordinal integer NOT NULL,
  last_ordinal  integer NOT NULL,
  jobs          integer NOT NULL,
  revision      bigint NOT NULL,
  deleted       boolean NOT NULL DEFAULT false,
  small         boolean NOT NULL,
  cells         bytea NOT NULL,
  sources       bytea NOT NULL,
  facts         bytea NOT NULL,
  PRIMARY KEY (account_id, run_id, first_ordinal, last_ordinal),
  CHECK (last_ordinal >= first_ordinal),
  CHECK (jobs >= 1 AND jobs <= (last_ordinal - first_ordinal + 1))
);

-- Metrics read cells of many rows. In the row they take one read.
ALTER TABLE visibility_facts ALTER COLUMN cells SET STORAGE MAIN;

-- LZ4 takes a fraction of the time of the default. A server that was built without it keeps the default.
DO $$ BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE visibility_facts ALTER COLUMN cells SET COMPRESSION lz4;
  END IF;
END $$;

-- LZ4 takes a fraction of the time of the default. A server that was built without it keeps the default.
DO $$ BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE visibility_facts ALTER COLUMN sources SET COMPRESSION lz4;
  END IF;
END $$;

-- LZ4 takes a fraction of the time of the default. A server that was built without it keeps the default.
DO $$ BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE visibility_facts ALTER COLUMN facts SET COMPRESSION lz4;
  END IF;
END $$;

CREATE INDEX visibility_facts_revision ON visibility_facts (account_id, revision, run_id) WHERE NOT deleted;
CREATE INDEX visibility_facts_small ON visibility_facts (account_id, run_id) WHERE small;

-- Runs with ended jobs that have no facts. Jobs up to the ordinal counted_to are counted.
CREATE TABLE visibility_backlog (
  account_id uuid NOT NULL,
  run_id     uuid NOT NULL,
  counted_to integer NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, run_id)
);

-- The brand revision at which the latest recount of an account ended.
CREATE TABLE visibility_recounts (
  account_id uuid PRIMARY KEY,
  revision   bigint NOT NULL
);

-- Insights: recommendations and alerts, each list with an index for the account, the filter's column and the list's order.
CREATE TABLE recommendations (
  account_id      uuid NOT NULL REFERENCES accounts(id),
  id              uuid NOT NULL,
  type            text NOT NULL CHECK (type <> ''),
  category        text NOT NULL CHECK (category IN ('on_page', 'off_page', 'technical', 'social')),
  title           text NOT NULL CHECK (title <> ''),
  summary         text NOT NULL,
  priority        text NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
  status          text NOT NULL CHECK (status IN ('suggested', 'accepted', 'in_progress', 'done', 'dismissed')),
  model_ids       text[] NOT NULL,
  question_ids    text[] NOT NULL,
  run_id          uuid,
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL,
  schedule_id     uuid,
  fingerprint     text COLLATE "C",
  status_imported boolean NOT NULL DEFAULT true,
  PRIMARY KEY (account_id, id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs(account_id, id)
);

CREATE INDEX recommendations_list ON recommendations (account_id, created_at, id);
CREATE INDEX recommendations_status ON recommendations (account_id, status, created_at, id);
CREATE INDEX recommendations_priority ON recommendations (account_id, priority, created_at, id);
CREATE INDEX recommendations_category ON recommendations (account_id, category, created_at, id);
CREATE INDEX recommendations_type ON recommendations (account_id, type, created_at, id);
CREATE INDEX recommendations_run ON recommendations (account_id, run_id, created_at, id);
CREATE UNIQUE INDEX recommendations_fingerprint ON recommendations (account_id, schedule_id, fingerprint) WHERE schedule_id IS NOT NULL;

CREATE TABLE alerts (
  account_id     uuid NOT NULL REFERENCES accounts(id),
  id             uuid NOT NULL,
  type           text NOT NULL,
  severity       text NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
  status         text NOT NULL CHECK (status IN ('open', 'acknowledged', 'resolved')),
  title          text NOT NULL CHECK (title <> ''),
  message        text NOT NULL,
  metric         text,
  direction      text NOT NULL CHECK (direction IN ('up', 'down', 'none')),
  current_value  double precision,
  baseline_value double precision,
  model_id       text,
  question_id    text,
  country        text,
  run_id         uuid,
  detected_at    timestamptz NOT NULL,
  resolved_at    timestamptz,
  brand_id       uuid,
  schedule_id    uuid,
  fingerprint    text COLLATE "C",
  PRIMARY KEY (account_id, id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs(account_id, id),
  CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
);

CREATE INDEX alerts_list ON alerts (account_id, detected_at, id);
CREATE INDEX alerts_status ON alerts (account_id, status, detected_at, id);
CREATE INDEX alerts_severity ON alerts (account_id, severity, detected_at, id);
CREATE INDEX alerts_type ON alerts (account_id, type, detected_at, id);
CREATE INDEX alerts_run ON alerts (account_id, run_id, detected_at, id);
CREATE UNIQUE INDEX alerts_fingerprint ON alerts (account_id, schedule_id, fingerprint) WHERE schedule_id IS NOT NULL AND status <> 'resolved';
CREATE INDEX alerts_schedule ON alerts (account_id, schedule_id) WHERE schedule_id IS NOT NULL;

-- Schedules: what creates recurring runs. next_at is the next due time. credential_id is the credential of the latest change by a
-- customer. refused counts the latest occurrences in a row that a run check refused.
CREATE TABLE schedules (
  account_id       uuid NOT NULL REFERENCES accounts(id),
  id               uuid NOT NULL,
  name             text COLLATE "C" NOT NULL CHECK (length(name) >= 1 AND length(name) <= 120),
  status           text COLLATE "C" NOT NULL CHECK (status IN ('active', 'paused')),
  paused_reason    text COLLATE "C" CHECK (paused_reason IN ('customer', 'operator', 'credential_revoked', 'credential_disabled', 'credential_expired', 'insufficient_scope', 'entitlement_required', 'refused')),
  cadence          text COLLATE "C" NOT NULL CHECK (cadence IN ('hourly', 'daily', 'weekly', 'monthly')),
  at_minute        smallint NOT NULL CHECK (at_minute BETWEEN 0 AND 1439),
  weekday          text COLLATE "C" CHECK (weekday IN ('monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday')),
  day              smallint CHECK (day BETWEEN 1 AND 31),
  time_zone        text COLLATE "C" NOT NULL,
  model_ids        text[] NOT NULL,
  question_ids     text[] NOT NULL,
  repetitions      integer NOT NULL CHECK (repetitions >= 1),
  measurement_type text NOT NULL,
  locale           text NOT NULL,
  country          text NOT NULL,
  language         text NOT NULL,
  min_change       smallint NOT NULL CHECK (min_change BETWEEN 0 AND 10000),
  next_at          timestamptz,
  last_due_at      timestamptz,
  last_run_id      uuid,
  credential_id    uuid NOT NULL,
  refused          smallint NOT NULL DEFAULT 0 CHECK (refused BETWEEN 0 AND 5),
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  PRIMARY KEY (account_id, id),
  CHECK ((status = 'paused') = (paused_reason IS NOT NULL)),
  CHECK ((status = 'paused') = (next_at IS NULL)),
  CHECK ((cadence = 'weekly') = (weekday IS NOT NULL)),
  CHECK ((cadence = 'monthly') = (day IS NOT NULL))
);

CREATE UNIQUE INDEX schedules_name ON schedules (account_id, name);
CREATE INDEX schedules_list ON schedules (account_id, created_at, id);
CREATE INDEX schedules_status ON schedules (account_id, status, created_at, id);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

-- What became of a due time, or of count due times that were missed, from due_at to last_due_at.
CREATE TABLE schedule_occurrences (
  account_id   uuid NOT NULL,
  schedule_id  uuid NOT NULL,
  due_at       timestamptz NOT NULL,
  last_due_at  timestamptz NOT NULL,
  count        integer NOT NULL CHECK (count >= 1),
  status       text COLLATE "C" NOT NULL CHECK (status IN ('created', 'skipped')),
  code         text COLLATE "C",
  detail       text,
  run_id       uuid,
  created_at   timestamptz NOT NULL,
  evaluated_at timestamptz,
  PRIMARY KEY (account_id, schedule_id, due_at),
  FOREIGN KEY (account_id, schedule_id) REFERENCES schedules(account_id, id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs(account_id, id),
  CHECK ((status = 'created') = (code IS NULL)),
  CHECK ((code IS NULL) = (detail IS NULL)),
  CHECK (status = 'created' OR run_id IS NULL AND evaluated_at IS NULL),
  CHECK (last_due_at >= due_at AND (count = 1) = (last_due_at = due_at))
);

CREATE INDEX schedule_occurrences_status ON schedule_occurrences (account_id, schedule_id, status, due_at);
CREATE INDEX schedule_occurrences_run ON schedule_occurrences (account_id, run_id);
CREATE INDEX schedule_occurrences_old ON schedule_occurrences (last_due_at);
CREATE INDEX schedule_occurrences_waiting ON schedule_occurrences (account_id, schedule_id, due_at) WHERE run_id IS NOT NULL AND evaluated_at IS NULL;

-- Evaluations and deletions of schedules increase version, so that an evaluation finds out whether another came between.
CREATE TABLE schedule_accounts (
  account_id uuid PRIMARY KEY REFERENCES accounts(id),
  version    bigint NOT NULL DEFAULT 0
);

-- Webhooks: endpoints, events, and the deliveries of events to endpoints.
--
-- Every key begins with the account. Rows that follow from a row are written by the statement that writes it: these
-- tables have no triggers.

-- A deleted endpoint stays, hidden, until its deliveries are deleted in small steps. slot numbers the endpoints of an
-- account, so that the index on it bounds how many there are. An endpoint is enabled if it has no disabled_reason.
CREATE TABLE webhook_endpoints (
  account_id      uuid NOT NULL REFERENCES accounts(id),
  id              uuid NOT NULL,
  slot            smallint CHECK (slot BETWEEN 1 AND 10),
  url             text COLLATE "C" NOT NULL CHECK (url ~ '^https?://[!-~]+$' AND length(url) <= 2048),
  description     text NOT NULL CHECK (length(description) <= 256),
  events          text[] NOT NULL CHECK (cardinality(events) >= 1), -- types of events, or * alone
  disabled_reason text CHECK (disabled_reason IN ('customer', 'operator', 'gone', 'failing')),
  failing_since   timestamptz, -- the first failed attempt after the latest success
  secret_version  integer NOT NULL DEFAULT 1 CHECK (secret_version >= 1),
  previous_until  timestamptz, -- until then the previous version of the secret signs too
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  deleted_at      timestamptz,
  PRIMARY KEY (account_id, id),
  CHECK ((deleted_at IS NULL) = (slot IS NOT NULL)),
  CHECK (secret_version > 1 OR previous_until IS NULL)
);

CREATE UNIQUE INDEX webhook_endpoints_slot ON webhook_endpoints (account_id, slot) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX webhook_endpoints_url ON webhook_endpoints (account_id, url) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL;

-- (attempts, resends) identifies the state in which an attempt found the delivery: the outcome of an attempt changes only
-- a delivery that is still in that state. requested: the delivery was asked for by a test or a resend.
CREATE TABLE webhook_deliveries (
  account_id      uuid NOT NULL,
  event_id        uuid NOT NULL,
  endpoint_id     uuid NOT NULL,
  status          text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  requested       boolean NOT NULL DEFAULT false,
  resends         integer NOT NULL DEFAULT 0 CHECK (resends >= 0),
  attempts        smallint NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  last_status     smallint CHECK (last_status BETWEEN 100 AND 999),
  last_error      text CHECK (last_error IN ('status', 'timeout', 'connection', 'tls', 'redirect', 'blocked')),
  next_attempt_at timestamptz DEFAULT now(),
  created_at      timestamptz NOT NULL DEFAULT now(),
  delivered_at    timestamptz,
  PRIMARY KEY (account_id, event_id, endpoint_id),
  FOREIGN KEY (account_id, event_id) REFERENCES events(account_id, id) ON DELETE CASCADE,
  FOREIGN KEY (account_id, endpoint_id) REFERENCES webhook_endpoints(account_id, id),
  CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
  CHECK ((status = 'delivered') = (delivered_at IS NOT NULL)),
  CHECK (status <> 'delivered' OR last_error IS NULL),
  CHECK (status = 'pending' OR attempts > 0)
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account_id, endpoint_id, next_attempt_at, event_id) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (account_id, endpoint_id, created_at, event_id);
CREATE INDEX webhook_deliveries_list_status ON webhook_deliveries (account_id, endpoint_id, status, created_at, event_id);
CREATE INDEX webhook_deliveries_requested ON webhook_deliveries (account_id, endpoint_id) WHERE requested AND status = 'pending';

-- One row per account. wake_at is when the account next needs a process that delivers: without an owner, when its first
-- delivery is due; with one, when the owner's lease ends. Every transaction that makes a delivery due earlier increments
-- version, and an owner gives the account back only in the version in which it looked for due deliveries.
CREATE TABLE webhook_queues (
  account_id uuid PRIMARY KEY REFERENCES accounts(id),
  owner      uuid,
  wake_at    timestamptz NOT NULL DEFAULT 'infinity'::timestamptz,
  version    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX webhook_queues_wake ON webhook_queues (wake_at);

-- How many tests and resends went to a host name, from all accounts, in one second.
CREATE TABLE webhook_hosts (
  host      text COLLATE "C" PRIMARY KEY CHECK (host <> ''),
  second    timestamptz NOT NULL,
  requested integer NOT NULL CHECK (requested BETWEEN 1 AND 10)
) WITH (fillfactor = 50);

CREATE INDEX webhook_hosts_second ON webhook_hosts USING brin (second);

-- The SHA-256 of the master secret that endpoints' secrets are derived from: at most one row.
CREATE TABLE webhook_master (
  singleton   boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32)
);

-- Cancels a run and returns it, or returns nothing if the run does not exist or is final. The serving role may call it
-- although it may not change runs. finished_at is the time when the row was locked, because jobs may have been claimed since the
-- transaction began. If a claim has locked rows of job_queue, it precedes the cancellation. The rows are locked in the order of their
-- keys, and found by the primary key whatever the statistics are.
CREATE FUNCTION cancel_run(account uuid, run uuid)
 RETURNS SETOF measurement_runs
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path FROM CURRENT
AS $$
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
$$;

REVOKE EXECUTE ON FUNCTION cancel_run FROM PUBLIC;

CREATE FUNCTION identity_changes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE identity_revision SET revision = GREATEST(revision + 1, floor(extract(epoch FROM clock_timestamp()) * 1e6)::bigint);
  RETURN NULL;
END $$;

CREATE TRIGGER credentials_change AFTER INSERT OR DELETE OR UPDATE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE credentials ENABLE ALWAYS TRIGGER credentials_change;
CREATE TRIGGER accounts_change AFTER DELETE OR UPDATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE accounts ENABLE ALWAYS TRIGGER accounts_change;
CREATE TRIGGER plans_change AFTER DELETE OR UPDATE ON plans FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE plans ENABLE ALWAYS TRIGGER plans_change;

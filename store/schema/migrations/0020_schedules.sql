-- oldest-compatible: 0018

-- Schedules create runs again and again. status is paused if and only if the schedule has a reason for it and no due time. min_change is in
-- ten-thousandths. refused counts the latest occurrences in a row that a run check refused.
CREATE TABLE schedules (
  account_id       uuid NOT NULL REFERENCES accounts,
  id               uuid NOT NULL,
  name             text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  status           text COLLATE "C" NOT NULL CHECK (status IN ('active', 'paused')),
  paused_reason    text COLLATE "C" CHECK (paused_reason IN ('customer', 'operator', 'credential_revoked', 'credential_disabled',
    'credential_expired', 'insufficient_scope', 'entitlement_required', 'refused')),
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

-- What became of due times. A row has one of them, or several that were missed. evaluated_at is when alerts and recommendations were
-- derived from the run.
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
  FOREIGN KEY (account_id, schedule_id) REFERENCES schedules (account_id, id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs (account_id, id),
  CHECK ((status = 'created') = (code IS NULL)),
  CHECK ((code IS NULL) = (detail IS NULL)),
  CHECK (status = 'created' OR run_id IS NULL AND evaluated_at IS NULL),
  CHECK (last_due_at >= due_at AND (count = 1) = (last_due_at = due_at))
);

CREATE INDEX schedule_occurrences_status ON schedule_occurrences (account_id, schedule_id, status, due_at);
CREATE INDEX schedule_occurrences_run ON schedule_occurrences (account_id, run_id);
CREATE INDEX schedule_occurrences_old ON schedule_occurrences (last_due_at);
CREATE INDEX schedule_occurrences_waiting ON schedule_occurrences (account_id, schedule_id, due_at)
  WHERE run_id IS NOT NULL AND evaluated_at IS NULL;

-- Transactions that add or delete schedules of an account, or evaluate its runs, lock its row. They change version if another evaluation
-- of the account would read what they change.
CREATE TABLE schedule_accounts (
  account_id uuid PRIMARY KEY REFERENCES accounts,
  version    bigint NOT NULL DEFAULT 0
);

-- A derived alert or recommendation has a schedule and a fingerprint, which imports do not change: what it is about, in the schedule.
ALTER TABLE alerts ADD COLUMN brand_id uuid, ADD COLUMN schedule_id uuid, ADD COLUMN fingerprint text COLLATE "C";
ALTER TABLE recommendations ADD COLUMN schedule_id uuid, ADD COLUMN fingerprint text COLLATE "C",
  ADD COLUMN status_imported boolean NOT NULL DEFAULT true; -- whether an import has set the status

CREATE UNIQUE INDEX alerts_fingerprint ON alerts (account_id, schedule_id, fingerprint) WHERE schedule_id IS NOT NULL AND status <> 'resolved';
CREATE INDEX alerts_schedule ON alerts (account_id, schedule_id) WHERE schedule_id IS NOT NULL;
CREATE UNIQUE INDEX recommendations_fingerprint ON recommendations (account_id, schedule_id, fingerprint) WHERE schedule_id IS NOT NULL;

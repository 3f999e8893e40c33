-- Webhooks: endpoints, events, and the deliveries of events to endpoints.
--
-- Every key begins with the account. Rows that follow from a row are written by the statement that writes it: the schema
-- has no triggers.

-- A deleted endpoint stays, hidden, until its deliveries are deleted in small steps. slot numbers the endpoints of an
-- account, so that the index on it bounds how many there are. An endpoint is enabled if it has no disabled_reason.
CREATE TABLE webhook_endpoints (
  account_id      uuid NOT NULL REFERENCES accounts,
  id              uuid NOT NULL,
  slot            smallint CHECK (slot BETWEEN 1 AND 10),
  url             text COLLATE "C" NOT NULL CHECK (url ~ '^https?://[!-~]+$' AND length(url) <= 2048),
  description     text NOT NULL CHECK (length(description) <= 256),
  events          text[] NOT NULL CHECK (events = '{*}' OR cardinality(events) >= 1 AND events <@ ARRAY[
    'run.completed', 'run.partial', 'run.failed', 'run.canceled', 'alert.opened', 'recommendation.suggested', 'webhook.test']),
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

-- subject_id is the run, alert, recommendation or endpoint that the event is about. A run becomes final once.
CREATE TABLE events (
  account_id uuid NOT NULL REFERENCES accounts,
  id         uuid NOT NULL,
  type       text COLLATE "C" NOT NULL CHECK (type IN (
    'run.completed', 'run.partial', 'run.failed', 'run.canceled', 'alert.opened', 'recommendation.suggested', 'webhook.test')),
  subject_id uuid NOT NULL,
  data       json NOT NULL CHECK (json_typeof(data) = 'object'),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

CREATE UNIQUE INDEX events_run ON events (account_id, subject_id)
  WHERE type IN ('run.completed', 'run.partial', 'run.failed', 'run.canceled');
CREATE INDEX events_list ON events (account_id, created_at, id);
CREATE INDEX events_list_type ON events (account_id, type, created_at, id);
CREATE INDEX events_time ON events (created_at);

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
  FOREIGN KEY (account_id, event_id) REFERENCES events ON DELETE CASCADE,
  FOREIGN KEY (account_id, endpoint_id) REFERENCES webhook_endpoints,
  CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
  CHECK ((status = 'delivered') = (delivered_at IS NOT NULL)),
  CHECK (status <> 'delivered' OR last_error IS NULL),
  CHECK (status = 'pending' OR attempts > 0)
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account_id, endpoint_id, next_attempt_at, event_id)
  WHERE status = 'pending';
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (account_id, endpoint_id, created_at, event_id);
CREATE INDEX webhook_deliveries_list_status ON webhook_deliveries (account_id, endpoint_id, status, created_at, event_id);
CREATE INDEX webhook_deliveries_requested ON webhook_deliveries (account_id, endpoint_id) WHERE requested AND status = 'pending';

-- One row per account. wake_at is when the account next needs a process that delivers: without an owner, when its first
-- delivery is due; with one, when the owner's lease ends. Every transaction that makes a delivery due earlier increments
-- version, and an owner gives the account back only in the version in which it looked for due deliveries.
CREATE TABLE webhook_queues (
  account_id uuid PRIMARY KEY REFERENCES accounts,
  owner      uuid,
  wake_at    timestamptz NOT NULL DEFAULT 'infinity',
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
  singleton   boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32)
);

INSERT INTO shared_secrets (name, secret) VALUES
  ('webhook_master', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

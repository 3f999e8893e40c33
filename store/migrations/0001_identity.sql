-- Who may call: plans, accounts, credentials, the persistent minute of each credential, and what operators changed.
--
-- Text that is compared or ordered is COLLATE "C", so that an order means the same in every database.

CREATE TABLE plans (
  code                  text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  features              text[] NOT NULL CHECK (array_position(features, NULL) IS NULL),
  rate_limit_per_minute integer CHECK (rate_limit_per_minute BETWEEN 1 AND 1000000), -- NULL: the service's default
  created_at            timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE accounts (
  id         uuid PRIMARY KEY,
  name       text NOT NULL CHECK (name <> ''),
  plan_code  text COLLATE "C" NOT NULL REFERENCES plans,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The raw key is in no table: key_hash is SHA-256 of it, key_prefix its public beginning.
CREATE TABLE credentials (
  id                    uuid PRIMARY KEY,
  account_id            uuid NOT NULL REFERENCES accounts,
  name                  text NOT NULL CHECK (name <> ''),
  key_prefix            text NOT NULL CHECK (key_prefix ~ '^aiv_live_[0-9A-Za-z]{8}$'),
  key_hash              bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  scopes                text[] NOT NULL CHECK (scopes <@ ARRAY['runs:read', 'runs:write', 'recommendations:read', 'alerts:read', 'webhooks:manage']),
  rate_limit_per_minute integer CHECK (rate_limit_per_minute BETWEEN 1 AND 1000000), -- NULL: the plan's
  rotated_from          uuid REFERENCES credentials,
  expires_at            timestamptz,
  disabled_at           timestamptz,
  revoked_at            timestamptz,
  created_at            timestamptz NOT NULL DEFAULT now(),
  UNIQUE (account_id, id)
);

-- ApiRateLimitBucket: one row per credential, updated in place. No index but the key's and half-empty pages, so that an
-- update stays in its page (HOT) and leaves no index entry behind.
--
-- used is the number of admitted requests of the window. granted is how many of the requests counted by the latest
-- statement were admitted: that statement reads it back, as RETURNING shows no old values before PostgreSQL 18.
-- rate_limit is the limit that it counted against.
CREATE TABLE api_rate_limit_buckets (
  account_id    uuid NOT NULL,
  credential_id uuid NOT NULL,
  window_start  timestamptz NOT NULL,
  used          integer NOT NULL CHECK (used >= 0),
  granted       integer NOT NULL CHECK (granted BETWEEN 0 AND used),
  rate_limit    integer NOT NULL,
  PRIMARY KEY (account_id, credential_id),
  FOREIGN KEY (account_id, credential_id) REFERENCES credentials (account_id, id)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Each change an operator made. It never holds a secret.
CREATE TABLE audit_log (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now(),
  actor   text NOT NULL,
  action  text NOT NULL,
  subject text NOT NULL,
  detail  jsonb NOT NULL DEFAULT '{}'
);

-- Identity: plans, accounts, credentials, the rate limit's windows, and the log of what operators changed.
--
-- Text that is compared or ordered is COLLATE "C", so that its order is the same in every database.

CREATE TABLE plans (
  code                  text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  features              text[] NOT NULL CHECK (array_position(features, NULL) IS NULL),
  rate_limit_per_minute integer CHECK (rate_limit_per_minute BETWEEN 1 AND 1000000), -- NULL: the service's default
  jobs_per_month        bigint CHECK (jobs_per_month >= 0), -- NULL: no quota
  max_unfinished_jobs   bigint CHECK (max_unfinished_jobs >= 0), -- NULL: the service's default
  created_at            timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE accounts (
  id             uuid PRIMARY KEY,
  name           text NOT NULL CHECK (name <> ''),
  plan_code      text COLLATE "C" NOT NULL REFERENCES plans,
  own_quota      boolean NOT NULL DEFAULT false, -- whether jobs_per_month replaces the plan's
  jobs_per_month bigint CHECK (jobs_per_month >= 0), -- NULL: no quota
  created_at     timestamptz NOT NULL DEFAULT now(),
  CHECK (own_quota OR jobs_per_month IS NULL)
);

-- No table contains a raw key: key_hash is its SHA-256, key_prefix its public beginning.
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

-- Operators are warned of credentials that expire soon.
CREATE INDEX credentials_expiry ON credentials (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;

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
  granted       integer NOT NULL CHECK (granted BETWEEN 0 AND used),
  rate_limit    integer NOT NULL,
  PRIMARY KEY (account_id, credential_id, window_start)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX api_rate_limit_buckets_window ON api_rate_limit_buckets (window_start);

-- One row: the revision of what all keys stand for. A process caches credentials under a revision and counts a request
-- only if the revision has not changed, so that a revocation, a plan or a limit holds from the next request on.
--
-- The revision is a time in microseconds or later, so that a database restored to an earlier state does not reach the same
-- revision again. The triggers also notice changes made with psql or by replication (ENABLE ALWAYS). They fire only on
-- operators' changes. An inserted credential counts too: after a failover that lost it, the revision is lost as well.
CREATE TABLE identity_revision (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  revision  bigint NOT NULL
);

INSERT INTO identity_revision (revision) VALUES (1);

CREATE FUNCTION identity_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE identity_revision SET revision = GREATEST(revision + 1, floor(extract(epoch FROM clock_timestamp()) * 1e6)::bigint);
  RETURN NULL;
END $$;

CREATE TRIGGER credentials_change AFTER INSERT OR UPDATE OR DELETE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
CREATE TRIGGER accounts_change AFTER UPDATE OR DELETE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
CREATE TRIGGER plans_change AFTER UPDATE OR DELETE ON plans FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE credentials ENABLE ALWAYS TRIGGER credentials_change;
ALTER TABLE accounts ENABLE ALWAYS TRIGGER accounts_change;
ALTER TABLE plans ENABLE ALWAYS TRIGGER plans_change;

-- Secrets shared by all processes. The cursor secret authenticates cursors; knowing it gives access to no data.
CREATE TABLE shared_secrets (
  name       text PRIMARY KEY,
  secret     bytea NOT NULL CHECK (octet_length(secret) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO shared_secrets (name, secret) VALUES
  ('cursor', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Each change made by an operator. It never contains a secret.
CREATE TABLE audit_log (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now(),
  actor   text NOT NULL,
  action  text NOT NULL,
  subject text NOT NULL,
  detail  jsonb NOT NULL DEFAULT '{}'
);

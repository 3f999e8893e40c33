-- A database that lost its latest commits (a failover to a standby that was behind) may lack a credential that a process
-- remembers. If a new one counts as a change as well, the revision is lost with it, and all is read again.
DROP TRIGGER credentials_change ON credentials;
CREATE TRIGGER credentials_change AFTER INSERT OR UPDATE OR DELETE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE credentials ENABLE ALWAYS TRIGGER credentials_change;

-- An end that never comes is none.
UPDATE credentials SET expires_at = CASE WHEN expires_at > now() THEN NULL ELSE created_at END WHERE NOT isfinite(expires_at);
ALTER TABLE credentials ADD CONSTRAINT credentials_expires_at_check CHECK (isfinite(expires_at));

-- Records are forgotten from the oldest on. Their pages are used again, so that ranges of them (BRIN) come to hold all times.
DROP INDEX idempotency_records_time;
CREATE INDEX idempotency_records_time ON idempotency_records (created_at);

-- What was checked when a row was written holds only while it does not change.
CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('what rows of %s refer to, and what was asked for, never changes', TG_TABLE_NAME),
    TABLE = TG_TABLE_NAME;
END $$;

CREATE TRIGGER measurement_runs_never_changed
  BEFORE UPDATE OF credential_id, methodology_version, model_ids, question_ids, repetitions, total_jobs ON measurement_runs
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();
CREATE TRIGGER measurement_jobs_never_changed
  BEFORE UPDATE OF account_id, run_id, model_no, question_no, repetition ON measurement_jobs
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();
CREATE TRIGGER usage_records_never_changed
  BEFORE UPDATE OF account_id, run_id, credential_id, jobs ON usage_records
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();
CREATE TRIGGER idempotency_records_never_changed
  BEFORE UPDATE OF account_id, method, route, key, request_hash, run_id, answer ON idempotency_records
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();

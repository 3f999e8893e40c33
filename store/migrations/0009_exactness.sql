-- Locks are taken in the order in which runs are written, and of what is read meanwhile last.

-- Records are forgotten from the oldest on. Their pages are used again, so that ranges of them (BRIN) come to hold all times.
CREATE INDEX idempotency_records_oldest ON idempotency_records (created_at);
DROP INDEX idempotency_records_time;

-- What was checked when a row was written holds only while it does not change.
CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('what rows of %s refer to, and what was asked for, never changes', TG_TABLE_NAME),
    TABLE = TG_TABLE_NAME;
END $$;

CREATE TRIGGER idempotency_records_never_changed
  BEFORE UPDATE OF account_id, method, route, key, request_hash, run_id, answer ON idempotency_records
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();
CREATE TRIGGER measurement_runs_never_changed
  BEFORE UPDATE OF credential_id, methodology_version, model_ids, question_ids, repetitions, total_jobs ON measurement_runs
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();
CREATE TRIGGER measurement_jobs_never_changed
  BEFORE UPDATE OF account_id, run_id, model_no, question_no, repetition ON measurement_jobs
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();
CREATE TRIGGER usage_records_never_changed
  BEFORE UPDATE OF account_id, run_id, credential_id, jobs ON usage_records
  FOR EACH STATEMENT EXECUTE FUNCTION never_changed();

-- A database that lost its latest commits (a failover to a standby that was behind) may lack a credential that a process
-- remembers. If a new one counts as a change as well, the revision is lost with it, and all is read again.
CREATE OR REPLACE TRIGGER credentials_change AFTER INSERT OR UPDATE OR DELETE ON credentials
  FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE credentials ENABLE ALWAYS TRIGGER credentials_change;

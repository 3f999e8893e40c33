-- One row: which state the words about credentials are in. A process remembers what the keys that it has seen stand for,
-- and counts a request only while this is the revision that it remembers them by. So a revocation, a plan or a limit holds
-- from the next request on, and a request need not read three rows to know that nothing has changed.
--
-- A credential, an account or a plan that is new changes nothing that could be remembered, so only updates count. The
-- revision is a time in microseconds, or later: a database restored to an earlier state does not come to it a second time.
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

CREATE TRIGGER credentials_change AFTER UPDATE OR DELETE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
CREATE TRIGGER accounts_change AFTER UPDATE OR DELETE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
CREATE TRIGGER plans_change AFTER UPDATE OR DELETE ON plans FOR EACH STATEMENT EXECUTE FUNCTION identity_changes();
ALTER TABLE credentials ENABLE ALWAYS TRIGGER credentials_change;
ALTER TABLE accounts ENABLE ALWAYS TRIGGER accounts_change;
ALTER TABLE plans ENABLE ALWAYS TRIGGER plans_change;

-- What the lists need to be read page by page, each by each of its filters alone: an index of the account, the filter's
-- column and the list's order.

CREATE INDEX measurement_runs_list ON measurement_runs (account_id, created_at, id);
CREATE INDEX measurement_runs_status ON measurement_runs (account_id, status, created_at, id);
CREATE INDEX measurement_runs_type ON measurement_runs (account_id, measurement_type, created_at, id);
CREATE INDEX measurement_runs_country ON measurement_runs (account_id, country, created_at, id);

-- A run has several models, so an index on them needs a row for each. It is filled by a trigger, and ALWAYS, so that it
-- holds for a run however it came here.
CREATE TABLE measurement_run_models (
  account_id uuid NOT NULL,
  model_id   text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  run_id     uuid NOT NULL,
  PRIMARY KEY (account_id, model_id, created_at, run_id)
);

CREATE FUNCTION measurement_run_models_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id)
  SELECT account_id, unnest(model_ids), created_at, id FROM added;
  RETURN NULL;
END $$;

CREATE TRIGGER measurement_run_models_follow AFTER INSERT ON measurement_runs
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION measurement_run_models_follow();
ALTER TABLE measurement_runs ENABLE ALWAYS TRIGGER measurement_run_models_follow;

-- An account sees everybody's questions and its own; owner makes both of them an equality that an index can serve.
ALTER TABLE questions ADD COLUMN owner uuid NOT NULL
  GENERATED ALWAYS AS (COALESCE(account_id, '00000000-0000-0000-0000-000000000000')) STORED;

CREATE INDEX questions_list ON questions (owner, id);
CREATE INDEX questions_language ON questions (owner, language, id);
CREATE INDEX questions_country ON questions (owner, country, id);
CREATE INDEX questions_topic ON questions (owner, topic, id);
CREATE INDEX questions_status ON questions (owner, status, id);

CREATE TABLE question_tags (
  owner       uuid NOT NULL,
  tag         text COLLATE "C" NOT NULL,
  question_id text COLLATE "C" NOT NULL REFERENCES questions ON DELETE CASCADE,
  PRIMARY KEY (owner, tag, question_id)
);
CREATE INDEX question_tags_question ON question_tags (question_id);

CREATE FUNCTION question_tags_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM question_tags WHERE question_id = NEW.id;
  END IF;
  INSERT INTO question_tags (owner, tag, question_id) SELECT NEW.owner, t, NEW.id FROM unnest(NEW.tags) t ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE TRIGGER question_tags_follow_insert AFTER INSERT ON questions FOR EACH ROW EXECUTE FUNCTION question_tags_follow();
CREATE TRIGGER question_tags_follow_update AFTER UPDATE OF tags ON questions FOR EACH ROW
  WHEN (OLD.tags IS DISTINCT FROM NEW.tags) EXECUTE FUNCTION question_tags_follow();

CREATE INDEX recommendations_list ON recommendations (account_id, created_at, id);
CREATE INDEX recommendations_status ON recommendations (account_id, status, created_at, id);
CREATE INDEX recommendations_priority ON recommendations (account_id, priority, created_at, id);
CREATE INDEX recommendations_category ON recommendations (account_id, category, created_at, id);
CREATE INDEX recommendations_type ON recommendations (account_id, type, created_at, id);
CREATE INDEX recommendations_run ON recommendations (account_id, run_id, created_at, id);

CREATE INDEX alerts_list ON alerts (account_id, detected_at, id);
CREATE INDEX alerts_status ON alerts (account_id, status, detected_at, id);
CREATE INDEX alerts_severity ON alerts (account_id, severity, detected_at, id);
CREATE INDEX alerts_type ON alerts (account_id, type, detected_at, id);
CREATE INDEX alerts_run ON alerts (account_id, run_id, detected_at, id);

-- Secrets that all processes share. The cursor secret authenticates cursors; whoever learns it can read nothing with it.
CREATE TABLE shared_secrets (
  name       text PRIMARY KEY,
  secret     bytea NOT NULL CHECK (octet_length(secret) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO shared_secrets (name, secret) VALUES
  ('cursor', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

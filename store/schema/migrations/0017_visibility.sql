-- oldest-compatible: 0011
-- How many jobs have facts, of those that ended with an answer or an error. A transaction that ends jobs adds to it.
ALTER TABLE measurement_runs ADD COLUMN jobs_counted integer NOT NULL DEFAULT 0 CHECK (jobs_counted >= 0);

-- What the answers of a run show of brands: a row has the facts of jobs that were counted together at one revision of the account's
-- brands. cells, sources and facts are in the forms of package visibility. deleted: the answers were deleted because of their age, so that
-- they cannot be recounted. small: to be merged with other rows of the run.
CREATE TABLE visibility_facts (
  account_id    uuid NOT NULL,
  run_id        uuid NOT NULL,
  first_ordinal integer NOT NULL,
  last_ordinal  integer NOT NULL CHECK (last_ordinal >= first_ordinal),
  jobs          integer NOT NULL CHECK (jobs BETWEEN 1 AND last_ordinal - first_ordinal + 1),
  revision      bigint NOT NULL,
  deleted       boolean NOT NULL DEFAULT false,
  small         boolean NOT NULL,
  cells         bytea NOT NULL, -- sums of metrics by model and question
  sources       bytea NOT NULL, -- sums of citations by model, question and host
  facts         bytea NOT NULL,
  PRIMARY KEY (account_id, run_id, first_ordinal, last_ordinal)
);

-- Metrics read cells of many rows. In the row they take one read.
ALTER TABLE visibility_facts ALTER COLUMN cells SET STORAGE MAIN;

DO $$ BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE visibility_facts ALTER COLUMN cells SET COMPRESSION lz4, ALTER COLUMN sources SET COMPRESSION lz4,
      ALTER COLUMN facts SET COMPRESSION lz4;
  END IF;
END $$;

-- Rows to recount.
CREATE INDEX visibility_facts_revision ON visibility_facts (account_id, revision, run_id) WHERE NOT deleted;

CREATE INDEX visibility_facts_small ON visibility_facts (account_id, run_id) WHERE small;

-- Runs that have ended jobs without facts, up to which ordinal they were counted.
CREATE TABLE visibility_backlog (
  account_id uuid NOT NULL,
  run_id     uuid NOT NULL,
  counted_to integer NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, run_id)
);

INSERT INTO visibility_backlog (account_id, run_id)
SELECT account_id, id FROM measurement_runs WHERE finished_at IS NULL OR jobs_completed + jobs_failed > 0;

-- Up to which brand revision the stored answers of an account were recounted.
CREATE TABLE visibility_recounts (
  account_id uuid PRIMARY KEY,
  revision   bigint NOT NULL
);

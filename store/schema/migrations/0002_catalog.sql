-- Catalog: methodologies, providers and what each depends on, models, questions.

CREATE TABLE methodologies (
  version           text COLLATE "C" PRIMARY KEY CHECK (version ~ '^AIVM-[0-9]+\.[0-9]+$'),
  status            text NOT NULL CHECK (status IN ('active', 'retired')),
  measurement_types text[] NOT NULL CHECK (cardinality(measurement_types) > 0),
  max_repetitions   integer NOT NULL CHECK (max_repetitions BETWEEN 1 AND 32767),
  max_jobs          integer NOT NULL CHECK (max_jobs BETWEEN 1 AND 1000000),
  created_at        timestamptz NOT NULL DEFAULT now()
);

INSERT INTO methodologies (version, status, measurement_types, max_repetitions, max_jobs)
VALUES ('AIVM-1.0', 'active', '{grounded}', 20, 100000);

CREATE TABLE providers (
  code       text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'),
  name       text NOT NULL CHECK (name <> ''),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- A dependency without a row is unmet: nothing is assumed.
CREATE TABLE provider_dependencies (
  provider_code text COLLATE "C" NOT NULL REFERENCES providers,
  dependency    text NOT NULL CHECK (dependency IN ('configuration', 'secret', 'contract', 'legal_approval')),
  met           boolean NOT NULL,
  note          text NOT NULL CHECK (note <> ''),
  changed_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider_code, dependency)
);

CREATE TABLE models (
  id                text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  name              text NOT NULL CHECK (name <> ''),
  provider_code     text COLLATE "C" NOT NULL REFERENCES providers,
  provider_model    text NOT NULL CHECK (provider_model <> ''),
  status            text NOT NULL CHECK (status IN ('active', 'deprecated', 'disabled')),
  measurement_types text[] NOT NULL CHECK (cardinality(measurement_types) > 0),
  countries         text[], -- NULL: all
  languages         text[], -- NULL: all
  grounded_search   boolean NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now()
);

-- A question without an account is shared by all accounts. owner makes shared and own questions an equality that an index
-- can serve.
CREATE TABLE questions (
  id         text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  account_id uuid REFERENCES accounts,
  owner      uuid NOT NULL GENERATED ALWAYS AS (COALESCE(account_id, '00000000-0000-0000-0000-000000000000')) STORED,
  text       text NOT NULL CHECK (text <> ''),
  language   text NOT NULL,
  country    text NOT NULL,
  topic      text NOT NULL,
  tags       text[] NOT NULL,
  status     text NOT NULL CHECK (status IN ('active', 'archived')),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX questions_list ON questions (owner, id);
CREATE INDEX questions_language ON questions (owner, language, id);
CREATE INDEX questions_country ON questions (owner, country, id);
CREATE INDEX questions_topic ON questions (owner, topic, id);
CREATE INDEX questions_status ON questions (owner, status, id);

-- One row per tag of a question, for the list filter. The statement that writes a question writes its tags.
CREATE TABLE question_tags (
  owner       uuid NOT NULL,
  tag         text COLLATE "C" NOT NULL,
  question_id text COLLATE "C" NOT NULL REFERENCES questions ON DELETE CASCADE,
  PRIMARY KEY (owner, tag, question_id)
);

CREATE INDEX question_tags_question ON question_tags (question_id);

-- One row: the revision of the tables above. Whatever changes them increments it in the same transaction.
CREATE TABLE catalog_revision (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  revision  bigint NOT NULL
);

INSERT INTO catalog_revision (revision) VALUES (1);

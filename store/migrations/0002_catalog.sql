-- What can be measured: methodologies, providers and what each depends on, models, questions.

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

-- A question without an account is everybody's.
CREATE TABLE questions (
  id         text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  account_id uuid REFERENCES accounts,
  text       text NOT NULL CHECK (text <> ''),
  language   text NOT NULL,
  country    text NOT NULL,
  topic      text NOT NULL,
  tags       text[] NOT NULL,
  status     text NOT NULL CHECK (status IN ('active', 'archived')),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- One row: which state of the catalog this is. Every change of the tables above increments it in its own transaction.
CREATE TABLE catalog_revision (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  revision  bigint NOT NULL
);

INSERT INTO catalog_revision (revision) VALUES (1);

-- The own questions of accounts have tables of their own, which a cluster distributes by account: adding one concerns one server, and
-- neither the catalog's revision nor another account. questions keeps those that all accounts share.
CREATE TABLE own_questions (
  account_id uuid NOT NULL REFERENCES accounts,
  id         text COLLATE "C" NOT NULL CHECK (id ~ '^[A-Za-z0-9._:/-]{1,128}$'),
  text       text NOT NULL CHECK (text <> ''),
  language   text NOT NULL,
  country    text NOT NULL,
  topic      text NOT NULL,
  tags       text[] NOT NULL,
  status     text NOT NULL CHECK (status IN ('active', 'archived')),
  form_hash  bytea CHECK (octet_length(form_hash) = 32), -- of language, country and the text's normal form; NULL: not computed yet
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

CREATE INDEX own_questions_language ON own_questions (account_id, language, id);
CREATE INDEX own_questions_country ON own_questions (account_id, country, id);
CREATE INDEX own_questions_topic ON own_questions (account_id, topic, id);
CREATE INDEX own_questions_status ON own_questions (account_id, status, id);
CREATE INDEX own_questions_form ON own_questions (account_id, form_hash, id);

CREATE TABLE own_question_tags (
  account_id  uuid NOT NULL,
  tag         text COLLATE "C" NOT NULL,
  question_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (account_id, tag, question_id),
  FOREIGN KEY (account_id, question_id) REFERENCES own_questions ON DELETE CASCADE
);

CREATE INDEX own_question_tags_question ON own_question_tags (account_id, question_id);

-- Transactions that add own questions of an account lock its row.
CREATE TABLE own_question_accounts (
  account_id uuid PRIMARY KEY REFERENCES accounts,
  additions  bigint NOT NULL DEFAULT 1 -- transactions that locked the row
);

INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status, created_at)
SELECT account_id, id, text, language, country, topic, tags, status, created_at FROM questions WHERE account_id IS NOT NULL;

INSERT INTO own_question_tags (account_id, tag, question_id)
SELECT q.account_id, t.tag, t.question_id FROM question_tags t JOIN questions q ON q.id = t.question_id WHERE q.account_id IS NOT NULL;

DELETE FROM question_tags t USING questions q WHERE q.id = t.question_id AND q.account_id IS NOT NULL;
DELETE FROM questions WHERE account_id IS NOT NULL;

-- The indexes and the key with the column are dropped with it.
ALTER TABLE question_tags DROP COLUMN owner;
ALTER TABLE question_tags ADD PRIMARY KEY (tag, question_id);
ALTER TABLE questions DROP COLUMN owner;
ALTER TABLE questions DROP COLUMN account_id;
CREATE INDEX questions_language ON questions (language, id);
CREATE INDEX questions_country ON questions (country, id);
CREATE INDEX questions_topic ON questions (topic, id);
CREATE INDEX questions_status ON questions (status, id);

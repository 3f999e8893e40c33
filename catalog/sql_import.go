package catalog

// Each upsert writes the rows of the temporary table incoming_NAME that differ, and returns a row for each. Rows keep
// created_at.

const upsertProviders = `
WITH written AS (
INSERT INTO providers (code, name) SELECT code, name FROM incoming_providers ORDER BY code
ON CONFLICT (code) DO UPDATE SET name = excluded.name WHERE providers.name <> excluded.name
RETURNING 1)
SELECT FROM written`

const upsertMethodologies = `
WITH written AS (
INSERT INTO methodologies (version, status, measurement_types, max_repetitions, max_jobs)
SELECT version, status, measurement_types, max_repetitions, max_jobs FROM incoming_methodologies ORDER BY version
ON CONFLICT (version) DO UPDATE SET (status, measurement_types, max_repetitions, max_jobs)
  = (excluded.status, excluded.measurement_types, excluded.max_repetitions, excluded.max_jobs)
WHERE (methodologies.status, methodologies.measurement_types, methodologies.max_repetitions, methodologies.max_jobs)
  IS DISTINCT FROM (excluded.status, excluded.measurement_types, excluded.max_repetitions, excluded.max_jobs)
RETURNING 1)
SELECT FROM written`

const upsertModels = `
WITH written AS (
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search)
SELECT id, name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search
FROM incoming_models ORDER BY id
ON CONFLICT (id) DO UPDATE SET (name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search)
  = (excluded.name, excluded.provider_code, excluded.provider_model, excluded.status, excluded.measurement_types, excluded.countries,
     excluded.languages, excluded.grounded_search)
WHERE (models.name, models.provider_code, models.provider_model, models.status, models.measurement_types, models.countries,
     models.languages, models.grounded_search)
  IS DISTINCT FROM (excluded.name, excluded.provider_code, excluded.provider_model, excluded.status, excluded.measurement_types,
     excluded.countries, excluded.languages, excluded.grounded_search)
RETURNING 1)
SELECT FROM written`

// upsertShared writes shared questions, with the rows of question_tags in the same statement. Text, language and
// country never change.
const upsertShared = `
WITH written AS (
  INSERT INTO questions (id, text, language, country, topic, tags, status)
  SELECT id, text, language, country, topic, tags, status FROM incoming_own_questions WHERE account_id IS NULL ORDER BY id
  ON CONFLICT (id) DO UPDATE SET (topic, tags, status) = (excluded.topic, excluded.tags, excluded.status)
  WHERE (questions.topic, questions.tags, questions.status) IS DISTINCT FROM (excluded.topic, excluded.tags, excluded.status)
  RETURNING id, tags
), removed AS (
  DELETE FROM question_tags t USING written w WHERE t.question_id = w.id AND t.tag <> ALL (w.tags)
), added AS (
  INSERT INTO question_tags (tag, question_id) SELECT tag, w.id FROM written w, unnest(w.tags) tag
  ON CONFLICT DO NOTHING
)
SELECT FROM written`

// incomingAccounts returns the accounts whose own questions a file contains, in the order in which they are locked.
const incomingAccounts = `SELECT DISTINCT account_id FROM incoming_own_questions WHERE account_id IS NOT NULL ORDER BY account_id`

// upsertOwn returns the questions that it writes. form_hash stays as it is, because the text does.
const upsertOwn = `
WITH written AS (
INSERT INTO own_questions AS o (account_id, id, text, language, country, topic, tags, status)
SELECT account_id, id, text, language, country, topic, tags, status FROM incoming_own_questions WHERE account_id IS NOT NULL
ORDER BY account_id, id
ON CONFLICT (account_id, id) DO UPDATE SET (topic, tags, status) = (excluded.topic, excluded.tags, excluded.status)
WHERE (o.topic, o.tags, o.status) IS DISTINCT FROM (excluded.topic, excluded.tags, excluded.status)
RETURNING account_id, id)
SELECT account_id, id FROM written`

// Each of the queries below returns lines that cannot be imported. Those with UNION would scan all own questions for
// each line if they had OR in its place: no index of own_questions begins with the id.

const unknownProviders = `
SELECT i.line FROM incoming_models i WHERE NOT EXISTS (SELECT FROM providers p WHERE p.code = i.provider_code)`

const unknownAccounts = `
SELECT i.line FROM incoming_own_questions i
WHERE i.account_id IS NOT NULL AND NOT EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id)`

const erasedAccounts = `
SELECT i.line FROM incoming_own_questions i WHERE EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id AND a.erased_at IS NOT NULL)`

// A question keeps its account, because runs of that account refer to it. No two accounts have a question with the same
// id, so that a file names each question once.
const movedQuestions = `
SELECT i.line FROM incoming_own_questions i
WHERE i.account_id IS NOT NULL AND EXISTS (SELECT FROM questions q WHERE q.id = i.id)
UNION
SELECT i.line FROM incoming_own_questions i
WHERE EXISTS (SELECT FROM own_questions o WHERE o.id = i.id AND o.account_id IS DISTINCT FROM i.account_id)`

// A question keeps what it asks, because the answers to it were given to that.
const changedQuestions = `
SELECT i.line FROM incoming_own_questions i
WHERE EXISTS (SELECT FROM questions q WHERE q.id = i.id AND (q.text, q.language, q.country) <> (i.text, i.language, i.country))
UNION
SELECT i.line FROM incoming_own_questions i
WHERE EXISTS (SELECT FROM own_questions o WHERE o.id = i.id AND (o.text, o.language, o.country) <> (i.text, i.language, i.country))`

// existingOwn are the own questions with the ids of a file, and the file, for the two queries above on Citus. It has no
// column that those do not use.
const existingOwn = `
WITH incoming_own_questions AS MATERIALIZED (SELECT line, account_id, id, text, language, country FROM incoming_own_questions),
own_questions AS MATERIALIZED (
  SELECT o.account_id, o.id, o.text, o.language, o.country FROM own_questions o JOIN incoming_own_questions i ON o.id = i.id)`

// coveredTwice returns the measurement types that more than one active methodology covers.
const coveredTwice = `
SELECT t FROM methodologies, unnest(measurement_types) t WHERE status = 'active' GROUP BY t HAVING count(*) > 1 ORDER BY t`
